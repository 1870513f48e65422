package clients

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/chart/deploy"
	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
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
	f.ManagerUser = "system:serviceaccount:" + ferrytest.SystemNamespace + ":" + account
	install(f)
	f.Kubectl(f.Hub, "", "label", "namespace", f.NS, "--overwrite", v1alpha1.LabelDispatch+"="+v1alpha1.DispatchEnabled)
	if err := deploy.AwaitAdmission(f.Context(), f.Hub, f.NS); err != nil {
		t.Fatal(err)
	}
	return f
}

// account is the manager's ServiceAccount.
const account = "jobferry-manager"

var installed struct {
	sync.Mutex
	done bool
}

// install brings what the chart does, but for the Deployment, to the hub, once.
func install(f *ferrytest.Ferry) {
	installed.Lock()
	defer installed.Unlock()
	if installed.done {
		return
	}
	for _, part := range []string{"rbac", "pods"} {
		for _, file := range []string{"role.yaml", "bindings.yaml"} {
			f.Kubectl(f.Hub, "", "apply", "--server-side", "-f", checkout.Path("config", part, file))
		}
	}
	f.Kubectl(f.Hub, "", "apply", "--server-side", "-k", checkout.Path("config", "admission", "policy"))
	installed.done = true
}

// RunManagerWithPods is a manager that shows Pods on the hub, with their logs, in the namespaces of
// tests that call ShowPods.
func RunManagerWithPods(f *ferrytest.Ferry, t testing.TB) {
	t.Helper()
	pods, err := product.PodsFlags()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := f.Hub.ServiceAccountKubeconfig(f.Context(), ferrytest.SystemNamespace, account)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	f.StartManager(append(pods, "--kubeconfig="+file)...)
}

// ShowPods has the hub show the Pods of the test's namespace, and waits until a Job has one for
// which a condition holds.
func ShowPods(f *ferrytest.Ferry, job string, condition func(*corev1.Pod) bool) *corev1.Pod {
	f.Kubectl(f.Hub, "", "label", "namespace", f.NS, "--overwrite", v1alpha1.LabelPods+"="+v1alpha1.PodsEnabled)
	return f.PodUntil(f.Hub, job, condition)
}

// InPhase is a condition of ShowPods.
func InPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == phase }
}
