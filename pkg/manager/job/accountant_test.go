package job

import (
	"fmt"
	"testing"
)

// A tenant with Jobs of ever other namespaces and resources makes the metrics of a worker no larger
// than that, and those of another worker not at all. What always counts isn't crowded out.
func TestLabelsOfUsageAreBounded(t *testing.T) {
	a := newAccountant(nil)
	namespaces, resources := map[string]bool{}, map[string]bool{}
	for n := range 2 * maxAccounts {
		namespace, resource := a.labelsOf("west", fmt.Sprint("team-", n), fmt.Sprint("example.com/", n))
		namespaces[namespace], resources[resource] = true, true
	}
	if len(namespaces) != maxAccounts+1 || len(resources) != maxAccountResources-3+1 {
		t.Errorf("%d namespaces and %d resources have a name", len(namespaces), len(resources))
	}
	for _, row := range []struct{ worker, namespace, resource, wantNamespace, wantResource string }{
		{"west", "team-0", "example.com/0", "team-0", "example.com/0"},
		{"west", "other", "cpu", "", "cpu"},
		{"east", "other", "example.com/other", "other", "example.com/other"},
	} {
		if namespace, resource := a.labelsOf(row.worker, row.namespace, row.resource); namespace != row.wantNamespace || resource != row.wantResource {
			t.Errorf("%+v: %q and %q", row, namespace, resource)
		}
	}
}
