package clients

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Main runs tests with a hub and the workers w1 and w2.
func Main(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current)},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 1}}},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), Nodes: []rig.Nodes{{Count: 1}}},
	)
}

// For is a hub as it's installed: with the policies of admission, and a manager of no more rights
// than it needs. Each Job of the test's namespace is dispatched, whoever creates it.
func For(t testing.TB) *ferrytest.Ferry {
	t.Helper()
	f := ferrytest.For(t)
	for _, file := range []string{"role.yaml", "bindings.yaml"} {
		f.Kubectl(f.Hub, "", "apply", "--server-side", "-f", checkout.Path("config", "rbac", file))
	}
	f.ManagerUser = "system:serviceaccount:" + ferrytest.SystemNamespace + ":jobferry-manager"
	f.Kubectl(f.Hub, "", "apply", "--server-side", "-k", checkout.Path("config", "admission", "policy"))
	f.Kubectl(f.Hub, "", "label", "namespace", f.NS, "--overwrite", v1alpha1.LabelDispatch+"="+v1alpha1.DispatchEnabled)
	for !isDispatched(t, f) { // nothing tells when a policy is in force
		select {
		case <-time.After(100 * time.Millisecond):
		case <-f.Context().Done():
			t.Fatal("admission doesn't give Jobs to the dispatcher")
		}
	}
	return f
}

func isDispatched(t testing.TB, f *ferrytest.Ferry) bool {
	t.Helper()
	made, err := f.Hub.Client().BatchV1().Jobs(f.NS).Create(f.Context(), rigtest.Job(f.NS, "probe"),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return made.Spec.ManagedBy != nil && *made.Spec.ManagedBy == v1alpha1.ManagedByDispatcher
}
