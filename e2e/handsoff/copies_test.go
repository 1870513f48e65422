package handsoff_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/policy"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// Backups of mirrors are restored, and run to their ends, while no manager is there: one of a Job
// that has finished, and one under another name.
func TestCopiesThatRanUnseen(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	w1 := f.Cluster("w1")
	for _, name := range []string{"done", "other"} {
		f.Submit(name, rigtest.RunFor(time.Second))
		f.HubJobUntil(name, rigtest.Complete)
	}
	copyOf := func(name, as string) *batchv1.Job {
		backup := f.MirrorUntil("w1", name, ferrytest.Exists)
		backup.ObjectMeta = metav1.ObjectMeta{Namespace: f.NS, Name: as, Labels: backup.Labels, Annotations: backup.Annotations}
		backup.Status = batchv1.JobStatus{}
		return backup
	}
	copies := []*batchv1.Job{copyOf("done", "done"), copyOf("other", "again")}
	foreground := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
	if err := w1.Client().BatchV1().Jobs(f.NS).Delete(f.Context(), "done", foreground); err != nil {
		t.Fatal(err)
	}
	f.MirrorGone("w1", "done")
	m.Stop()
	for _, job := range copies {
		f.Create(w1, job)
		f.MirrorUntil("w1", job.Name, rigtest.Complete)
	}

	f.RunManager()
	f.EventUntil("done", "MirrorStopped", "w1")
	f.EventUntil("other", "MirrorStopped", "under another name, again")
	f.MirrorGone("w1", "done")
	f.JobGone(w1, f.NS, "again")
	if account := usage.Read(f.HubJobUntil("done", rigtest.Complete)); len(account) != 1 {
		t.Errorf("the account has %d mirrors: %s", len(account), account)
	}
}

// A worker's policy gives Jobs to another Job controller, which isn't there: they run elsewhere.
func TestAPolicyGivesMirrorsAway(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	w1 := f.Cluster("w1")
	hasPolicy(t, f, w1, policy.Policy{Name: "gives-away"}.Mutates(`Object{spec: Object.spec{managedBy: "example.org/other"}}`),
		ofAJob(w1, func(j *batchv1.Job) bool { return ptr.Deref(j.Spec.ManagedBy, "") != "" }))
	isPassedOver(t, f, "changes spec.managedBy")
}

// isPassedOver checks that a Job that prefers w1 is taken back there, for a reason, and ends in w2.
func isPassedOver(t *testing.T, f *ferrytest.Ferry, why string) {
	t.Helper()
	f.Submit("job", ferrytest.WithSelector("name in (w1,w2)"), preferring("w1"), rigtest.RunFor(time.Second))
	f.EventUntil("job", "MirrorRefused", why)
	f.MirrorGone("w1", "job")
	if done := f.HubJobUntil("job", rigtest.Complete); ferrytest.ClusterOf(done) != "w2" {
		t.Errorf("it ended on %s", ferrytest.ClusterOf(done))
	}
}
