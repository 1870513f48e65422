package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/jobferry/jobferry/e2e/chart/permissions"
	"github.com/jobferry/jobferry/e2e/checkout"
)

// part is where the rules of one part are: in the generated file, in the chart, and under which
// name.
type part struct {
	permissions.Part
	generated string
	chart     string
	name      string
	values    string
}

var parts = []part{
	{permissions.Manager, "config/rbac", hubChart, "jobferry-manager", ""},
	{permissions.Carry, "config/carry", hubChart, "jobferry-carry", "carry.kinds={ConfigMap,Secret,Service,ServiceAccount}"},
	{permissions.Subresources, "config/subresources", hubChart, "jobferry-subresources", ""},
	{permissions.Admission, "config/webhook", hubChart, "jobferry-admission", "admission.mode=Webhook"},
	{permissions.Kueue, "config/kueue", hubChart, "jobferry-kueue", ""},
	{permissions.MetricsAuth, "config/metrics-auth", hubChart, "jobferry-metrics-auth", ""},
	{permissions.MetricsAuth, "config/metrics-auth", workerChart, "jobferry-worker-metrics-auth", ""},
	{permissions.Worker, "config/worker", workerChart, "jobferry-worker", ""},
}

// What the code's markers ask for, what the chart gives, and what has a reason are the same.
func TestRoles(t *testing.T) {
	for _, p := range parts {
		t.Run(p.chart+"/"+string(p.Part), func(t *testing.T) {
			file, err := os.ReadFile(checkout.Path(p.generated, "role.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			generated := granted(t, parse(t, string(file)), "jobferry-"+string(p.Part))
			var args []string
			if p.values != "" {
				args = []string{"--set", p.values}
			}
			inChart := granted(t, render(t, p.chart, args...), p.name)
			if diff := cmp.Diff(generated, inChart); diff != "" {
				t.Errorf("the chart gives something else than %s (-file +chart); run make generate:\n%s", p.generated, diff)
			}
			if diff := cmp.Diff(generated, permissions.Rights(permissions.Of(p.Part))); diff != "" {
				t.Errorf("the table of reasons has something else than %s (-file +table):\n%s", p.generated, diff)
			}
		})
	}
}

// granted are the rights that the ClusterRole and the Role of a name give.
func granted(t *testing.T, all objects, name string) map[permissions.Right]bool {
	t.Helper()
	rights := map[permissions.Right]bool{}
	for _, object := range all {
		if object.GetName() != name || object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		role := as[rbacv1.Role](t, object) // a ClusterRole without aggregation has the same fields
		for right := range permissions.Granted(role.Namespace, role.Rules) {
			rights[right] = true
		}
	}
	if len(rights) == 0 {
		t.Fatalf("there is no role %s", name)
	}
	return rights
}

// Only the kinds that are named can be read.
func TestCarryKinds(t *testing.T) {
	got := granted(t, render(t, hubChart, "--set", "carry.kinds={ConfigMap,ServiceAccount}"), "jobferry-carry")
	for right := range got {
		if right.Resource == "secrets" {
			t.Errorf("gives the right to %s", right)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d rights, want 3 for each of 2 kinds", len(got))
	}
	for _, object := range render(t, hubChart) {
		if object.GetName() == "jobferry-carry" {
			t.Errorf("%s %s without any kind", object.GetKind(), object.GetName())
		}
	}
}

// The documentation has the table as it is.
func TestDocs(t *testing.T) {
	file := checkout.Path("docs", "reference", "rbac.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next := string(page)
	for _, p := range permissions.Parts() {
		if next, err = permissions.Section(next, p); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, file, next)
}

// Every bound role is bound to the program's own ServiceAccount, and to nothing else. Where it
// makes its requests as another one, its own may only do that.
func TestBindings(t *testing.T) {
	for chart, account := range map[string]string{hubChart: "jobferry-manager", workerChart: "jobferry-worker"} {
		for name, values := range valueSets(t, chart) {
			if name == "least" {
				continue // roles are somebody else's there
			}
			all := render(t, chart, "-f", values)
			for _, object := range append(all.of("RoleBinding"), all.of("ClusterRoleBinding")...) {
				binding := as[rbacv1.RoleBinding](t, object)
				want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}}
				if name == "drop-in" && object.GetName() != "jobferry-worker-impersonation" {
					want[0].Name, want[0].Namespace = "job-controller", "kube-system"
				}
				if diff := cmp.Diff(want, binding.Subjects); diff != "" {
					t.Errorf("%s, %s %s: %s", filepath.Base(values), object.GetKind(), object.GetName(), diff)
				}
			}
		}
	}
}
