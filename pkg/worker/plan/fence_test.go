package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// synced is what one sync of a Job does, all of whose requests succeed.
func synced(job *batchv1.Job, fenced bool, pods ...*corev1.Pod) (*Plan, *Record) {
	p := Compute(Snapshot{Job: job, Pods: pods, Fenced: fenced, Now: noon}, testOptions)
	deleted := sets.New[types.UID]()
	for _, d := range p.Delete {
		deleted.Insert(d.Pod.UID)
	}
	return p, p.Record(Result{Created: len(p.Create), Deleted: deleted})
}

func since(job *batchv1.Job) { job.Status.StartTime = at(-100) }

func wasFenced(job *batchv1.Job) {
	job.Status.Conditions = append(job.Status.Conditions,
		newCondition(v1alpha1.ConditionJobFenced, corev1.ConditionTrue, v1alpha1.ReasonHubOutOfTouch, messageFenced, noon))
}

// A fence takes the Pods, and leaves all else as it is: what the API server, and the hub, hold to
// be the Job's state.
func TestFenceStopsThePodsOnly(t *testing.T) {
	job := aJob(sized(2, 5), since)
	p, a := synced(job, true, aPod("a", running), aPod("b"), aPod("c", exited(0, 1)), aPod("d", exited(1, 1)))
	if len(p.Create) != 0 || len(p.Delete) != 2 || !p.Delete[0].Untrack || !p.Delete[1].Untrack {
		t.Errorf("creates %d, deletes %+v", len(p.Create), p.Delete)
	}
	s := a.Status
	if !s.StartTime.Equal(job.Status.StartTime) {
		t.Errorf("startTime %v: the API server forbids a change while the Job isn't suspended", s.StartTime)
	}
	if findCondition(s.Conditions, batchv1.JobSuspended) != nil {
		t.Error("Suspended doesn't follow spec.suspend")
	}
	if trueCondition(s.Conditions, v1alpha1.ConditionJobFenced) == nil || len(a.Events) != 1 || a.Events[0].Reason != "Fenced" {
		t.Errorf("conditions %v, events %v", s.Conditions, a.Events)
	}
	if s.Active != 0 || *s.Terminating != 2 {
		t.Errorf("active %d, terminating %d", s.Active, *s.Terminating)
	}
	settled := a.Settle(sets.New[types.UID]("c", "d"))
	if settled.Status.Succeeded != 1 || settled.Status.Failed != 1 {
		t.Errorf("succeeded %d, failed %d: only what had ended counts", settled.Status.Succeeded, settled.Status.Failed)
	}
	if _, again := synced(withStatus(job, s), true); again.Changed && len(again.Events) > 0 {
		t.Error("reported twice")
	}
}

func withStatus(job *batchv1.Job, s batchv1.JobStatus) *batchv1.Job {
	next := job.DeepCopy()
	next.Status = s
	return next
}

func TestFencedJobGoesOn(t *testing.T) {
	p, a := synced(aJob(sized(2, 2), since, wasFenced), false)
	if len(p.Create) != 2 || findCondition(a.Status.Conditions, v1alpha1.ConditionJobFenced).Status != corev1.ConditionFalse {
		t.Errorf("creates %d, conditions %v", len(p.Create), a.Status.Conditions)
	}
	if len(a.Events) != 1 || a.Events[0].Reason != "Unfenced" {
		t.Errorf("events %v", a.Events)
	}
}

// Neither is the Job's fault: the deadline applies when the Job continues, and a suspension keeps
// its own condition.
func TestFenceAndOtherRules(t *testing.T) {
	late := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](50) }
	for name, row := range map[string]struct {
		job    *batchv1.Job
		fenced bool
		want   batchv1.JobConditionType
		not    batchv1.JobConditionType
	}{
		"past its deadline":           {aJob(since, late), true, v1alpha1.ConditionJobFenced, batchv1.JobFailureTarget},
		"past its deadline, later":    {aJob(since, late, wasFenced), false, batchv1.JobFailureTarget, ""},
		"suspended as well":           {aJob(suspended), true, batchv1.JobSuspended, ""},
		"fenced before it ever began": {aJob(), true, v1alpha1.ConditionJobFenced, batchv1.JobSuspended},
		"all done":                    {aJob(since), true, batchv1.JobSuccessCriteriaMet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			if name == "all done" {
				pods = append(pods, aPod("a", succeeded))
			}
			_, a := synced(row.job, row.fenced, pods...)
			if trueCondition(a.Status.Conditions, row.want) == nil || trueCondition(a.Status.Conditions, row.not) != nil {
				t.Errorf("conditions %v", a.Status.Conditions)
			}
		})
	}
}

// A work queue that has a success starts no new Pod, and is complete when none is left. What the
// fence stopped had still work to do.
func TestFencedWorkQueueIsNotTakenForDone(t *testing.T) {
	one := func(j *batchv1.Job) { since(j); j.Status.Succeeded = 1 }
	_, a := synced(aJob(workQueue(3), one), true, aPod("a", running), aPod("b", running))
	if trueCondition(a.Status.Conditions, batchv1.JobSuccessCriteriaMet) != nil {
		t.Fatal("complete, though two of its Pods were stopped")
	}
	job := withStatus(aJob(workQueue(3)), a.Status)
	if _, again := synced(job, true); trueCondition(again.Status.Conditions, batchv1.JobSuccessCriteriaMet) != nil {
		t.Error("complete in the next sync")
	}
	p, on := synced(job, false)
	if len(p.Create) != 3 || trueCondition(on.Status.Conditions, v1alpha1.ConditionJobFenced) != nil {
		t.Errorf("%d Pods started again, conditions %v", len(p.Create), on.Status.Conditions)
	}
	refused := Compute(Snapshot{Job: job, Now: noon}, testOptions).Record(Result{})
	if trueCondition(refused.Status.Conditions, v1alpha1.ConditionJobFenced) == nil || trueCondition(refused.Status.Conditions, batchv1.JobSuccessCriteriaMet) != nil {
		t.Errorf("no Pod could be started, conditions %v", refused.Status.Conditions)
	}
	if _, done := synced(aJob(workQueue(3), one), true); trueCondition(done.Status.Conditions, batchv1.JobSuccessCriteriaMet) == nil {
		t.Error("not complete, though no Pod was left to be stopped")
	}
}
