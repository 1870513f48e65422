package restore_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A copy of the hub is started from a backup of its etcd, to test it, with a manager of its own.
// That writes nothing in the worker, whatever is done on the copy, and says so; production goes on,
// with its next leader, too. When production is gone, an admin has the copy take over.
func TestACopyOfTheHubLeavesTheWorkerAlone(t *testing.T) {
	f := ferrytest.For(t)
	production := f.StartManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	for _, name := range []string{"stays", "ends"} {
		f.Submit(name, rigtest.RunForever())
		f.HubJobUntil(name, rigtest.Running(1))
	}
	backup := filepath.Join(t.TempDir(), "etcd")
	if err := f.Hub.Backup(f.Context(), backup); err != nil {
		t.Fatal(err)
	}
	f.Submit("later", rigtest.RunForever())
	f.HubJobUntil("later", rigtest.Running(1))
	untilCounted(t, f)

	copied := *f
	copied.Hub = f.Cluster("copy")
	if err := copied.Hub.Restore(f.Context(), backup); err != nil {
		t.Fatal(err)
	}
	tester := copied.StartManager()
	copied.WorkerUntil("w1", heldElsewhere)
	copied.EventOn("default", "w1", v1alpha1.ReasonHeldElsewhere, "kubectl annotate --overwrite workercluster w1 ")
	copied.Delete("stays", metav1.DeletePropagationBackground)
	copied.Submit("new", rigtest.RunForever())
	copied.EventUntil("new", v1alpha1.EventPending, v1alpha1.ReasonHeldElsewhere)

	tester.Kill() // its next leader isn't production's
	tester = copied.StartManager()
	production.Kill()
	production = f.StartManager()
	f.EndPod("w1", podOf(f, "ends", ""))
	f.HubJobUntil("ends", rigtest.Complete)
	copied.WorkerUntil("w1", heldElsewhere)
	for _, name := range []string{"stays", "later"} {
		f.MirrorUntil("w1", name, rigtest.Running(1))
		f.HubJobUntil(name, rigtest.Running(1))
	}
	copied.HubJobUntil("stays", func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil })

	production.Kill()
	takeOver(t, &copied)
	f.MirrorGone("w1", "stays")
	f.MirrorGone("w1", "later")
	copied.HubJobUntil("ends", rigtest.Complete)
	copied.HubJobUntil("new", rigtest.Running(1))

	f.StartManager() // late: it's not the leader of the hub that writes there now
	f.WorkerUntil("w1", heldElsewhere)
	tester.Kill()
	takeOver(t, f)
}

// takeOver has a hub write to w1 that another one wrote to, by the command in the condition.
func takeOver(t *testing.T, f *ferrytest.Ferry) {
	t.Helper()
	holder := holderOf(t, f)
	w := f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		return heldElsewhere(w) && strings.HasSuffix(meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionExclusive).Message, "="+holder)
	})
	message := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionExclusive).Message
	_, command, _ := strings.Cut(message, "kubectl ")
	if out, err := f.Hub.Kubectl(f.Context(), "", strings.Fields(command)...); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	f.WorkerUntil("w1", exclusive)
}

// heldElsewhere: another hub writes to a worker.
func heldElsewhere(w *v1alpha1.WorkerCluster) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionExclusive)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonHeldElsewhere
}

// exclusive: this hub writes to a worker, and no other does.
func exclusive(w *v1alpha1.WorkerCluster) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionExclusive)
}

// holderOf is who holds the worker's Lease now.
func holderOf(t *testing.T, f *ferrytest.Ferry) string {
	t.Helper()
	system, err := f.Hub.Client().CoreV1().Namespaces().Get(f.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := f.Cluster("w1").Client().CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(f.Context(), v1alpha1.Origin(system.UID).WriterLease(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// untilCounted waits until the worker's Lease has a count that no backup of the hub has which was
// made before.
func untilCounted(t *testing.T, f *ferrytest.Ferry) {
	t.Helper()
	first := 0
	f.Until(rig.Objects(f.Cluster("w1").Client().CoordinationV1().RESTClient(), "leases", v1alpha1.SystemNamespace), func(o runtime.Object) bool {
		lease, is := o.(*coordinationv1.Lease)
		if !is || !strings.HasPrefix(lease.Name, v1alpha1.Origin("").WriterLease()) {
			return false
		}
		_, text, _ := strings.Cut(lease.Annotations[v1alpha1.AnnotationTerm], " ")
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = count
		}
		return count > first+1
	})
}
