package chart_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobferry/jobferry/e2e/chart/permissions"
	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// bases are kustomizations that stand for values of a chart.
var bases = []struct {
	name       string
	chart      string
	resources  []string
	components []string
	values     string
}{
	{"hub", hubChart, []string{"default"}, nil, "admission.mode=Off,admission.checks=false,kueue.enabled=false"},
	{"hub with the policy", hubChart, []string{"default", "admission/policy"}, nil, "admission.mode=Policy,kueue.enabled=false"},
	{"hub with all parts", hubChart, []string{"default", "admission/webhook"}, []string{"carry", "kueue", "pods", "pods/certificate", "webhook"},
		"carry.kinds={ConfigMap,Secret,Service,ServiceAccount},kueue.readSecrets=true,admission.mode=Webhook,pods.enabled=true,pods.requestCertificate=true"},
	{"worker", workerChart, []string{"worker"}, nil, ""},
}

// The kustomize bases make what the charts do: the same objects, with the same rights, arguments
// and security.
func TestKustomize(t *testing.T) {
	f := rigtest.For(t)
	for _, row := range bases {
		t.Run(row.name, func(t *testing.T) {
			want := essentials(t, render(t, row.chart, "--set", row.values))
			base := kustomization(t, row.resources, row.components)
			got := essentials(t, parse(t, f.Kubectl(f.Cluster("hub"), "", "kustomize", base)))
			const home = "Namespace " + namespace // Helm makes it itself
			if _, found := got[home]; !found {
				t.Errorf("there is no %s", home)
			}
			delete(got, home)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-chart +kustomize:\n%s", diff)
			}
		})
	}
}

// kustomization makes one of folders in config.
func kustomization(t *testing.T, resources, components []string) string {
	t.Helper()
	dir := t.TempDir()
	text := "resources:\n"
	for _, r := range resources {
		text += "  - " + relative(t, dir, r) + "\n"
	}
	text += "components:\n"
	for _, c := range components {
		text += "  - " + relative(t, dir, c) + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// relative is the path to a folder of config, as kustomize wants it.
func relative(t *testing.T, from, name string) string {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(from, checkout.Path("config", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// essentials are, by kind and name, what of the objects must be the same. Labels aren't: Helm has
// some of its own.
func essentials(t *testing.T, all objects) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, object := range all {
		found[object.GetKind()+" "+object.GetName()] = essential(t, object)
	}
	return found
}

func essential(t *testing.T, object *unstructured.Unstructured) any {
	t.Helper()
	switch object.GetKind() {
	case "Deployment":
		return deployment(as[appsv1.Deployment](t, object))
	case "ClusterRole", "Role":
		role := as[rbacv1.Role](t, object) // a ClusterRole has the same fields, but for its aggregation
		if len(role.Rules[0].NonResourceURLs) > 0 {
			return role.Rules
		}
		return permissions.Granted(role.Namespace, role.Rules)
	case "ClusterRoleBinding", "RoleBinding":
		return []any{object.Object["roleRef"], object.Object["subjects"]}
	case "NetworkPolicy":
		return networkPolicy(as[networkingv1.NetworkPolicy](t, object))
	case "MutatingWebhookConfiguration":
		return object.Object["webhooks"]
	case "APIService", "CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "FlowSchema":
		return object.Object["spec"]
	default:
		return object.GetNamespace()
	}
}

// networkPolicy is what of a NetworkPolicy must be the same. Its selectors have labels of Helm's.
func networkPolicy(p *networkingv1.NetworkPolicy) any {
	for _, rule := range p.Spec.Ingress {
		slices.SortFunc(rule.Ports, func(a, b networkingv1.NetworkPolicyPort) int {
			return strings.Compare(a.Port.String(), b.Port.String())
		})
	}
	for _, rule := range p.Spec.Egress {
		for _, peer := range rule.To {
			if peer.PodSelector != nil {
				delete(peer.PodSelector.MatchLabels, "app.kubernetes.io/instance")
			}
		}
	}
	return []any{p.Spec.Ingress, p.Spec.Egress, p.Spec.PolicyTypes}
}

// deployment is what of a Deployment must be the same.
func deployment(d *appsv1.Deployment) any {
	spec := d.Spec.Template.Spec
	container := spec.Containers[0]
	args := effective(container.Args)
	slices.SortFunc(container.Ports, func(a, b corev1.ContainerPort) int { return strings.Compare(a.Name, b.Name) })
	return map[string]any{
		"replicas": *d.Spec.Replicas, "strategy": d.Spec.Strategy, "account": spec.ServiceAccountName,
		"pod security": spec.SecurityContext, "security": container.SecurityContext,
		"command": container.Command, "args": args, "ports": container.Ports, "image": container.Image,
		"resources": container.Resources, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
		"grace": *spec.TerminationGracePeriodSeconds, "spread": len(spec.TopologySpreadConstraints),
	}
}

// effective are the flags in order of their names; of two, the last one counts. A flag without a
// value is true, and one that is off is as if it weren't there.
func effective(args []string) (flags []string) {
	values := map[string]string{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			value = "true"
		}
		values[name] = value
	}
	for name, value := range values {
		if value != "false" {
			flags = append(flags, fmt.Sprintf("%s=%s", name, value))
		}
	}
	slices.Sort(flags)
	return flags
}

// The bases are taken by a real API server, strictly, and the samples, too.
func TestKustomizeIsAccepted(t *testing.T) {
	f := rigtest.For(t)
	// While an aggregated API is out of reach, no namespace can be deleted: so the samples come
	// first, and go last.
	for cluster, folders := range map[string][]string{"w1": {"samples", "default", "admission/policy"}, "bare": {"worker"}} {
		c := f.Cluster(cluster)
		for _, folder := range folders {
			f.Kubectl(c, "", "apply", "--server-side", "--validate=strict", "-k", checkout.Path("config", folder))
			t.Cleanup(func() { deleteAll(t, c, checkout.Path("config", folder)) })
		}
	}
	hub := f.Cluster("w1")
	f.AwaitCRDs(hub, "workerclusters.jobferry.dev")
	for _, sample := range []string{"workercluster.yaml", "registration.yaml"} {
		f.Kubectl(hub, "", "apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", checkout.Path("config", "samples", sample))
	}
}

func deleteAll(t *testing.T, c *rig.Cluster, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended
	defer cancel()
	if _, err := c.Kubectl(ctx, "", "delete", "-k", folder, "--ignore-not-found"); err != nil {
		t.Error(err)
	}
}

// The chart's CRDs are the generated ones, and stay when it's uninstalled, unless told otherwise.
func TestCRDs(t *testing.T) {
	for keep, want := range map[string]string{"true": "keep", "false": ""} {
		crds := render(t, hubChart, "--set", "crds.keep="+keep).of("CustomResourceDefinition")
		files, err := filepath.Glob(checkout.Path("config", "crd", "jobferry.dev_*.yaml"))
		if err != nil || len(files) == 0 || len(crds) != len(files) {
			t.Fatalf("%d CRDs, want those in %v (error %v)", len(crds), files, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			generated := parse(t, string(content))[0]
			crd := crds.one(t, "CustomResourceDefinition", generated.GetName())
			if diff := cmp.Diff(generated.Object["spec"], crd.Object["spec"]); diff != "" {
				t.Errorf("run make generate: -generated +chart:\n%s", diff)
			}
			if got := crd.GetAnnotations()["helm.sh/resource-policy"]; got != want {
				t.Errorf("with crds.keep=%s its policy is %q", keep, got)
			}
		}
	}
	if crds := render(t, hubChart, "--set", "crds.enabled=false").of("CustomResourceDefinition"); len(crds) > 0 {
		t.Error("there are CRDs with crds.enabled=false")
	}
}
