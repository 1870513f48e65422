package chart_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/jobferry/jobferry/e2e/chart/permissions"
	"github.com/jobferry/jobferry/e2e/checkout"
)

// roleParts says which part of the table each role is, by its name in charts and kustomize bases.
var roleParts = map[string]permissions.Part{
	"jobferry-manager":               permissions.Manager,
	"jobferry-carry":                 permissions.Carry,
	"jobferry-subresources":          permissions.Subresources,
	"jobferry-pods":                  permissions.Pods,
	"jobferry-pods-certificate":      permissions.PodsCert,
	"jobferry-admission":             permissions.Admission,
	"jobferry-kueue":                 permissions.Kueue,
	"jobferry-kueue-secrets":         permissions.KueueSecrets,
	"jobferry-metrics-auth":          permissions.MetricsAuth,
	"jobferry-worker-metrics-auth":   permissions.MetricsAuth,
	"jobferry-metrics-reader":        permissions.MetricsReader,
	"jobferry-worker-metrics-reader": permissions.MetricsReader,
	"jobferry-worker":                permissions.Worker,
	"jobferry-worker-probe":          permissions.DropIn,
	"jobferry-worker-impersonation":  permissions.DropIn,
	"jobferry-view":                  permissions.View,
	"jobferry-edit":                  permissions.Edit,
	"jobferry-admin":                 permissions.Admin,
}

// Each verb of each role, in the charts and in config, has a use in the table; each row of the
// table is in a role.
func TestEveryVerbHasAUse(t *testing.T) {
	unused := permissions.Rights(nil)
	for _, part := range roleParts {
		maps.Copy(unused, permissions.Rights(permissions.Of(part)))
	}
	for where, role := range everyRole(t) {
		part, known := roleParts[role.Name]
		if !known {
			t.Errorf("%s: role %s isn't in the table of uses", where, role.Name)
			continue
		}
		used := permissions.Rights(permissions.Of(part))
		for right := range permissions.Granted(role.Namespace, role.Rules) {
			delete(unused, right)
			if !used[right] {
				t.Errorf("%s: role %s may %s, for which the table has no use", where, role.Name, right)
			}
		}
	}
	for _, right := range sorted(unused) {
		t.Errorf("the table has a use for %s, which no role gives", right)
	}
}

// everyRole is each Role and ClusterRole, by where it's from.
func everyRole(t *testing.T) map[string]*rbacv1.Role {
	t.Helper()
	roles := map[string]*rbacv1.Role{}
	add := func(where string, all objects) {
		for _, object := range append(all.of("Role"), all.of("ClusterRole")...) {
			role := as[rbacv1.Role](t, object) // a ClusterRole without aggregation has the same fields
			roles[where+" "+object.GetKind()+" "+role.Name] = role
		}
	}
	for _, chart := range []string{hubChart, workerChart} {
		for name, values := range valueSets(t, chart) {
			args := []string{"-f", values}
			if chart == hubChart {
				args = append(args, "--set", "kueue.namespace=kueue-system,carry.kinds={ConfigMap,Secret,Service,ServiceAccount}")
			}
			add(chart+" "+name, render(t, chart, args...))
		}
	}
	err := filepath.WalkDir(checkout.Path("config"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), "Role") {
			add(path, parse(t, string(content)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.Sorted(maps.Keys(roles))
	if len(found) < 40 {
		t.Errorf("only %d roles are found: %v", len(found), found)
	}
	return roles
}
