package handsoff_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// runsSoon: the Job ends long before the time for which a worker is passed over that refused it.
func runsSoon(f *ferrytest.Ferry, name string) {
	f.HubJobUntil(name, rigtest.Complete)
}

// A worker refuses Jobs while their namespace is being deleted there. When it's gone, they run.
func TestANamespaceThatIsBeingDeleted(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(passesOverForLong)
	f.Register("w1")
	namespaces := f.Cluster("w1").Client().CoreV1().Namespaces()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.NS, Finalizers: []string{"example.org/held"}}}
	if _, err := namespaces.Create(f.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.LeaveWorker("w1")
	if err := namespaces.Delete(f.Context(), f.NS, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		f.Submit(name, ferrytest.OnWorker("w1"))
		f.EventUntil(name, "MirrorRefused", "being terminated")
	}

	f.Kubectl(f.Cluster("w1"), "", "patch", "namespace", f.NS, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	runsSoon(f, "first")
	runsSoon(f, "second")
}

// A worker has another Job of this name. When that's gone, the hub's runs.
func TestAForeignJobThatGoes(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(passesOverForLong)
	f.Register("w1")
	f.NamespaceIn("w1")
	f.Create(f.Cluster("w1"), rigtest.Job(f.NS, "job", rigtest.RunForever()))
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.EventUntil("job", "Conflict", "isn't ours")
	policy := metav1.DeletePropagationBackground
	if err := f.Cluster("w1").Client().BatchV1().Jobs(f.NS).Delete(f.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	runsSoon(f, "job")
}

// passesOverForLong has a test fail that waits until a refusal ends by itself.
func passesOverForLong(o *manager.Options) { o.PassOver = time.Hour }
