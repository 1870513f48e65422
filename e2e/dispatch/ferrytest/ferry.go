package ferrytest

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// HubName is the name of the hub among the clusters given to rigtest.Main.
	HubName = "hub"
	// SystemNamespace is where the registration Secrets are.
	SystemNamespace = v1alpha1.SystemNamespace
)

// Ferry is a hub with its manager and workers, as one test sees it.
type Ferry struct {
	*rigtest.Fixture
	t testing.TB
	// Hub is the cluster that Jobs are submitted to.
	Hub *rig.Cluster
	// NS is the namespace of this test on the hub: its Jobs that name the dispatcher are dispatched.
	// In workers Jobferry creates it.
	NS string
	// ManagerUser is whom RunManager's manager is for the hub; empty: an admin.
	ManagerUser string
}

// For prepares the hub if need be, and returns the ferry of a test.
func For(t testing.TB) *Ferry {
	t.Helper()
	return ForHub(t, HubName)
}

// ForHub is For in packages with several hubs.
func ForHub(t testing.TB, hub string) *Ferry {
	t.Helper()
	f := &Ferry{Fixture: rigtest.For(t), t: t}
	f.Hub = f.Cluster(hub)
	f.install()
	f.NS = f.LabelledNamespace(Dispatched, f.Hub)
	return f
}

// Dispatched labels a namespace whose Jobs are dispatched if they name the dispatcher.
var Dispatched = map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed}

// installed are the hubs that have our CRD.
var installed struct {
	sync.Mutex
	hubs map[*rig.Cluster]bool
}

// install brings the CRD and our namespace to the hub, once.
func (f *Ferry) install() {
	f.t.Helper()
	installed.Lock()
	defer installed.Unlock()
	if installed.hubs[f.Hub] {
		return
	}
	f.Kubectl(f.Hub, "", "apply", "--server-side", "-k", checkout.Path("config", "crd"))
	f.AwaitCRDs(f.Hub, "workerclusters.jobferry.dev")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SystemNamespace}}
	if _, err := f.Hub.Client().CoreV1().Namespaces().Create(f.Context(), ns, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	if installed.hubs == nil {
		installed.hubs = map[*rig.Cluster]bool{}
	}
	installed.hubs[f.Hub] = true
}

// NamespaceIn makes this test's namespace in a worker before Jobferry does.
func (f *Ferry) NamespaceIn(worker string) {
	f.t.Helper()
	f.namespaceIn(worker, nil)
}

// RestrictPods does so, and the namespace takes none of the tests' Pods.
func (f *Ferry) RestrictPods(worker string) {
	f.t.Helper()
	f.namespaceIn(worker, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
}

func (f *Ferry) namespaceIn(worker string, labels map[string]string) {
	f.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.NS, Labels: labels}}
	if _, err := f.Cluster(worker).Client().CoreV1().Namespaces().Create(f.Context(), ns, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.LeaveWorker(worker)
}

// LeaveWorker removes this test's namespace from a worker when the test has ended, and shows it if
// it failed.
func (f *Ferry) LeaveWorker(worker string) {
	f.t.Cleanup(func() {
		// the test's own has ended
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c := f.Cluster(worker)
		if f.t.Failed() {
			state, err := c.Kubectl(ctx, "", "get", "jobs,pods,events", "-o", "wide", "-n", f.NS)
			f.t.Logf("worker %s (error %v):\n%s", worker, err, state)
		}
		err := c.Client().CoreV1().Namespaces().Delete(ctx, f.NS, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			f.t.Logf("namespace %s in %s: %v", f.NS, worker, err)
		}
	})
}
