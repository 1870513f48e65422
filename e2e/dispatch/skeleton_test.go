package dispatch_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestWalkingSkeleton(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	t.Run("status shows on the hub at once", statusShowsAtOnce)
	t.Run("kinds of Jobs end on the hub as in the worker", func(t *testing.T) {
		for _, k := range kinds {
			t.Run(k.name, func(t *testing.T) { t.Parallel(); k.endsAsInTheWorker(t) })
		}
	})
	t.Run("the hub has no Pods and the mirror no marks of the hub", mirrorIsAPlainJob)
	t.Run("delete removes the mirror, its Pods, then the hub Job", deleteGoesFromTheWorkerUp)
}

// kind is a kind of Job, and how it ends.
type kind struct {
	name    string
	options []rigtest.Option
	end     batchv1.JobConditionType
	want    batchv1.JobStatus
}

var kinds = []kind{
	{"one Pod", nil, batchv1.JobComplete, batchv1.JobStatus{Succeeded: 1}},
	{"20 completions", []rigtest.Option{rigtest.Parallel(20)}, batchv1.JobComplete, batchv1.JobStatus{Succeeded: 20}},
	{"indexed", []rigtest.Option{rigtest.Indexed(10)}, batchv1.JobComplete,
		batchv1.JobStatus{Succeeded: 10, CompletedIndexes: "0-9"}},
	{"retries and succeeds", []rigtest.Option{rigtest.FailFirst(1)}, batchv1.JobComplete,
		batchv1.JobStatus{Succeeded: 1, Failed: 1}},
	{"fails by backoffLimit", []rigtest.Option{rigtest.ExitCode(3), rigtest.BackoffLimit(0)}, batchv1.JobFailed,
		batchv1.JobStatus{Failed: 1}},
	{"work queue", []rigtest.Option{atMost(3)}, batchv1.JobComplete, batchv1.JobStatus{Succeeded: 3}},
	{"success policy", []rigtest.Option{rigtest.Indexed(3), leaderSucceeds, rigtest.PodLabel(rig.LabelFailIndexes, "1_2"),
		rigtest.BackoffLimit(100)}, batchv1.JobComplete, batchv1.JobStatus{Succeeded: 1, CompletedIndexes: "0"}},
}

// atMost sets parallelism; alone it makes a work queue.
func atMost(pods int32) rigtest.Option {
	return func(j *batchv1.Job) { j.Spec.Parallelism = &pods }
}

// leaderSucceeds makes a Job that succeeds with its index 0.
func leaderSucceeds(j *batchv1.Job) {
	zero := "0"
	j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: &zero}}}
}

func (k kind) endsAsInTheWorker(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", k.options...)
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	ended := f.HubJobUntil("job", rigtest.HasCondition(k.end))
	m := f.MirrorUntil(worker, "job", rigtest.HasCondition(k.end))
	if got := ended.Status; got.Succeeded != k.want.Succeeded || got.CompletedIndexes != k.want.CompletedIndexes {
		t.Errorf("succeeded %d (%s), want %d (%s)", got.Succeeded, got.CompletedIndexes, k.want.Succeeded, k.want.CompletedIndexes)
	}
	if ended.Status.Failed < k.want.Failed {
		t.Errorf("failed %d, want at least %d", ended.Status.Failed, k.want.Failed)
	}
	if differ := differences(&ended.Status, &m.Status); differ != "" {
		t.Errorf("hub and worker differ:\n%s", differ)
	}
	if ended.Status.Active != 0 || ended.Status.StartTime == nil {
		t.Errorf("ended with %d active, startTime %v", ended.Status.Active, ended.Status.StartTime)
	}
}

func mirrorIsAPlainJob(t *testing.T) {
	f := ferrytest.For(t)
	hub := f.Submit("job", rigtest.Parallel(2), rigtest.RunForever(), func(j *batchv1.Job) {
		j.Labels = map[string]string{"team": "blue"}
		j.Annotations["note"] = "kept"
		j.Finalizers = []string{"example.org/hold"}
		j.Spec.TTLSecondsAfterFinished = new(int32)
	})
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	if pods := f.Pods(f.Hub); len(pods) != 0 {
		t.Errorf("the hub has %d Pods", len(pods))
	}
	m := f.MirrorUntil(worker, "job", ferrytest.Exists)
	if m.Spec.ManagedBy != nil || len(m.OwnerReferences) != 0 || m.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("managedBy %v, owners %v, ttl %v", m.Spec.ManagedBy, m.OwnerReferences, m.Spec.TTLSecondsAfterFinished)
	}
	for _, finalizer := range m.Finalizers {
		t.Errorf("finalizer %s", finalizer)
	}
	if m.Labels["team"] != "blue" || m.Annotations["note"] != "kept" {
		t.Errorf("labels %v, annotations %v", m.Labels, m.Annotations)
	}
	if m.Labels[v1alpha1.LabelOrigin] == "" || m.Annotations[v1alpha1.AnnotationHubUID] != string(hub.UID) {
		t.Errorf("the mirror doesn't say whose it is: labels %v, annotations %v", m.Labels, m.Annotations)
	}
	f.PatchIn(f.Hub, types.MergePatchType, "job", `{"metadata":{"finalizers":["jobferry.dev/mirror"]}}`)
}

func deleteGoesFromTheWorkerUp(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever(), rigtest.PodLabel(rig.LabelStopAfter, "1s"))
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	began := time.Now()
	f.Delete("job", metav1.DeletePropagationForeground)
	f.HubJobGone("job")
	if took := time.Since(began); took < time.Second {
		t.Errorf("the hub Job went after %s, before the Pods had the time to stop", took)
	}
	f.MirrorGone(worker, "job")
	if pods := f.Pods(f.Cluster(worker)); len(pods) != 0 {
		t.Errorf("%d Pods left in the worker", len(pods))
	}
}
