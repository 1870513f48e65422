package mirror

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

const (
	complete   = batchv1.JobComplete
	criteria   = batchv1.JobSuccessCriteriaMet
	failed     = batchv1.JobFailed
	target     = batchv1.JobFailureTarget
	isSuspend  = batchv1.JobSuspended
	reasonDone = batchv1.JobReasonCompletionsReached
)

var start, end = noon, noon.Add(5 * time.Minute)

func createdAt(at time.Time) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(at) }
}

func successPolicy(j *batchv1.Job) {
	j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr.To[int32](1)}}}
}

// Each row is a hub Job, its mirror, and the hub Job as it should be.
var stepRows = map[string]struct{ hub, mirror, want *mirrortest.Job }{
	"live counters are taken over": {
		job(), job().Started(start).Pods(2, 1, 1), job().Started(start).Pods(2, 1, 1),
	},
	"ready is held to active": {
		job(), job().Started(start).Pods(1, 2, 1), job().Started(start).Pods(1, 1, 1),
	},
	"Pods that aren't counted yet are counted, each once": {
		job().Started(start),
		job().Started(start).Counted(1, 1).Do(func(j *batchv1.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"s"}, Failed: []types.UID{"a", "b", "a"}}
		}),
		job().Started(start).Counted(2, 3),
	},
	"of an Indexed Job, its indexes say what has succeeded": {
		indexedJob().Started(start),
		indexedJob().Started(start).Counted(0, 0).CompletedIndexes("0").FailedIndexes("4").Do(func(j *batchv1.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"s"}, Failed: []types.UID{"f"}}
		}),
		indexedJob().Started(start).Counted(1, 1).CompletedIndexes("0").FailedIndexes("4"),
	},
	"succeeded of an Indexed Job is counted from its indexes, in the canonical form": {
		indexedJob(), indexedJob().Started(start).Counted(9, 0).CompletedIndexes("0,1,2").FailedIndexes("4"),
		indexedJob().Started(start).Counted(3, 0).CompletedIndexes("0-2").FailedIndexes("4"),
	},
	"indexes are trimmed when the Job was scaled down": {
		indexedJob().Indexed(2).Parallelism(2).Generation(2).Started(start).Counted(3, 0).CompletedIndexes("0-2"),
		indexedJob().Started(start).Counted(4, 0).CompletedIndexes("0,1,3,4").FailedIndexes("2"),
		indexedJob().Indexed(2).Parallelism(2).Generation(2).Started(start).Counted(2, 0).CompletedIndexes("0,1").FailedIndexes(""),
	},
	"scaled down, and then parallelism alone: succeeded is held": {
		indexedJob().Indexed(2).Parallelism(1).Generation(3).Started(start).Counted(3, 0).CompletedIndexes("0-2"),
		indexedJob().Started(start).Counted(2, 0).CompletedIndexes("0,1"),
		indexedJob().Indexed(2).Parallelism(1).Generation(3).Started(start).Counted(3, 0).CompletedIndexes("0,1"),
	},
	"a fresh start doesn't take counters back": {
		indexedJob().Started(start).Counted(2, 3).CompletedIndexes("1,2").FailedIndexes("0"),
		indexedJob().Annotation(v1alpha1.AnnotationFreshStart, "true").Started(end).Pods(2, 0, 0).Counted(1, 1).CompletedIndexes("0").FailedIndexes("4"),
		indexedJob().Started(start).Pods(2, 0, 0).Counted(3, 3).CompletedIndexes("0-2").FailedIndexes("4"),
	},
	"ended before it heard of more completions: progress, and no end": {
		indexedJob().Indexed(4).Parallelism(4).Generation(2).Started(start).Pods(2, 2, 0),
		indexedJob().Indexed(2).Parallelism(2).Started(start).Pods(0, 0, 0).Counted(2, 0).CompletedIndexes("0,1").Completed(end).
			True(criteria, reasonDone, end).True(complete, reasonDone, end),
		indexedJob().Indexed(4).Parallelism(4).Generation(2).Started(start).Pods(0, 0, 0).Counted(2, 0).CompletedIndexes("0,1"),
	},
	"ended by its success policy: more completions don't matter": {
		indexedJob().Indexed(4).Parallelism(4).Generation(2).Do(successPolicy).Started(start),
		indexedJob().Indexed(2).Parallelism(2).Started(start).Counted(1, 0).CompletedIndexes("0").
			True(criteria, batchv1.JobReasonSuccessPolicy, end),
		indexedJob().Indexed(4).Parallelism(4).Generation(2).Do(successPolicy).Started(start).Counted(1, 0).CompletedIndexes("0").
			True(criteria, batchv1.JobReasonSuccessPolicy, end),
	},
	"more completions, when the hub has shown that it ends": {
		indexedJob().Indexed(4).Parallelism(4).Generation(2).Started(start).Counted(2, 0).CompletedIndexes("0,1").True(criteria, reasonDone, end),
		indexedJob().Indexed(2).Parallelism(2).Started(start).Counted(2, 0).CompletedIndexes("0,1").Completed(end).
			True(criteria, reasonDone, end).True(complete, reasonDone, end),
		indexedJob().Indexed(4).Parallelism(4).Generation(2).Started(start).Counted(2, 0).CompletedIndexes("0,1").Completed(end).
			True(criteria, reasonDone, end).True(complete, reasonDone, end),
	},
	"an end in two steps": {
		job().Started(start), job().Started(start).True(target, "BackoffLimitExceeded", end).Pods(0, 0, 1),
		job().Started(start).True(target, "BackoffLimitExceeded", end).Pods(0, 0, 1),
	},
	"Complete without SuccessCriteriaMet: synthesized": {
		job().Started(start), job().Started(start).Counted(5, 0).Completed(end).True(complete, "", end),
		job().Started(start).Counted(5, 0).Completed(end).Do(trueFor(criteria, reasonDone, messageCompleted, end)).True(complete, "", end),
	},
	"Failed without FailureTarget: synthesized": {
		job().Started(start), job().Started(start).Counted(0, 7).True(failed, "BackoffLimitExceeded", end),
		job().Started(start).Counted(0, 7).True(target, "BackoffLimitExceeded", end).True(failed, "BackoffLimitExceeded", end),
	},
	"the end is held while Pods remain": {
		job().Started(start), job().Started(start).Pods(0, 0, 1).Completed(end).True(complete, reasonDone, now),
		job().Started(start).Pods(0, 0, 1).True(criteria, reasonDone, now),
	},
	"counters of a mirror that ended long ago are stale": {
		job().Started(start), job().Started(start).Pods(1, 1, 1).Completed(end).True(complete, reasonDone, noon),
		job().Started(start).Pods(0, 0, 0).Completed(end).True(criteria, reasonDone, noon).True(complete, reasonDone, noon),
	},
	"a condition that leads to the end stays as it was": {
		job().Started(start).True(target, "A", noon), job().Started(start).True(target, "B", end).Counted(0, 1),
		job().Started(start).True(target, "A", noon).Counted(0, 1),
	},
	"conditions of types that aren't the Job API's": {
		job().Started(start).True("hub.example/Mine", "x", noon), job().Started(start).True("worker.example/Theirs", "y", noon).Counted(1, 0),
		job().Started(start).True("hub.example/Mine", "x", noon).Counted(1, 0),
	},
	"a worker's clock that's ahead": {
		job(), job().Started(now.Add(time.Minute)).Completed(now.Add(2*time.Minute)).True(criteria, "", now.Add(time.Minute)).True(complete, "", now.Add(2*time.Minute)),
		job().Started(now).Completed(now).Do(trueFor(criteria, "", "", now)).True(complete, "", now),
	},
	"a worker's clock that's 90 minutes ahead": {
		job(), job().Started(now.Add(90*time.Minute)).Completed(now.Add(91*time.Minute)).True(criteria, "", now.Add(91*time.Minute)).True(complete, "", now.Add(91*time.Minute)),
		job().Started(now).Completed(now).Do(trueFor(criteria, "", "", now)).True(complete, "", now),
	},
	"a worker's clock that's 90 minutes behind": {
		job().Do(createdAt(start)), job().Started(start.Add(-90*time.Minute)).Completed(start.Add(-89*time.Minute)).True(criteria, "", start.Add(-89*time.Minute)).True(complete, "", start.Add(-89*time.Minute)),
		job().Do(createdAt(start)).Started(start).Completed(start).Do(trueFor(criteria, "", "", start)).True(complete, "", start),
	},
	"a worker's clock that's behind": {
		job().Started(end), job().Started(start).Completed(start.Add(time.Second)).True(criteria, "", start).True(complete, "", start.Add(time.Second)),
		job().Started(end).Completed(end).True(criteria, "", start).True(complete, "", start.Add(time.Second)),
	},
	"Complete without a completionTime": {
		job().Started(start), job().Started(start).True(criteria, "", end).True(complete, "", end),
		job().Started(start).True(criteria, "", end).True(complete, "", end).Completed(end),
	},
	"the first start stays": {
		job().Started(start), job().Started(end).Pods(1, 0, 0), job().Started(start).Pods(1, 0, 0),
	},
	"suspended, and not stopped yet": {
		job().Suspend(true).Started(start).Pods(2, 2, 0), job().Started(start).Pods(1, 1, 1),
		job().Suspend(true).Started(start).Pods(1, 1, 1),
	},
	"created suspended, and running in the worker: no start": {
		job().Suspend(true), job().Started(start).Pods(1, 1, 0), job().Suspend(true).Pods(1, 1, 0),
	},
	"suspended, and stopped": {
		job().Suspend(true).Started(start).Pods(2, 2, 0),
		job().Suspend(true).Started(start).Pods(0, 0, 2).True(isSuspend, "Paused", end),
		job().Suspend(true).Pods(0, 0, 2).Do(trueFor(isSuspend, reasonSuspended, messageSuspended, end)),
	},
	"resumed, and the worker hasn't seen it": {
		job().Do(trueFor(isSuspend, reasonSuspended, messageSuspended, noon)),
		job().Started(start).Pods(0, 0, 1).True(isSuspend, "", noon),
		job().Do(trueFor(isSuspend, reasonSuspended, messageSuspended, noon)).Pods(0, 0, 1),
	},
	"resumed": {
		job().Do(trueFor(isSuspend, reasonSuspended, messageSuspended, noon)),
		job().Started(end).Pods(2, 0, 0).Condition(isSuspend, corev1.ConditionFalse, "", end),
		job().Started(end).Pods(2, 0, 0).Do(suspendedFor(corev1.ConditionFalse, reasonResumed, messageResumed, end)),
	},
	"suspended by someone in the worker": {
		job().Started(start).Pods(2, 2, 0), job().Suspend(true).True(isSuspend, "", end).Pods(0, 0, 2),
		job().Started(start).Pods(0, 0, 2),
	},
	"ended while it was being suspended": {
		job().Suspend(true), job().Started(start).Counted(5, 0).Completed(end).True(criteria, "", end).True(complete, "", end),
		job().Suspend(true).Started(start).Counted(5, 0).Completed(end).True(criteria, "", end).True(complete, "", end),
	},
}

func TestSteps(t *testing.T) {
	for name, row := range stepRows {
		t.Run(name, func(t *testing.T) {
			hub := row.hub.Obj()
			next, ok := Reflect(hub, row.mirror.Obj(), now).(Next)
			if !ok {
				t.Fatalf("got %+v", Reflect(hub, row.mirror.Obj(), now))
			}
			if diff := cmp.Diff(row.want.Obj().Status, next.Status); diff != "" {
				t.Error(diff)
			}
			hub.Status = next.Status
			if again, isNext := Reflect(hub, row.mirror.Obj(), now.Add(time.Second)).(Next); isNext {
				t.Errorf("then %+v", again)
			}
		})
	}
}

func trueFor(c batchv1.JobConditionType, reason, message string, at time.Time) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		setCondition(&j.Status, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Reason: reason, Message: message}, at)
	}
}

func suspendedFor(s corev1.ConditionStatus, reason, message string, at time.Time) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		setCondition(&j.Status, batchv1.JobCondition{Type: isSuspend, Status: s, Reason: reason, Message: message}, at)
	}
}

// What can't be shown yet, and what has been shown.
func TestReflectWithoutNext(t *testing.T) {
	deleted := func(j *batchv1.Job) { j.DeletionTimestamp = timePtr(now) }
	progress := job().Started(noon).Counted(2, 1)
	ended := func(f batchv1.JobConditionType) *mirrortest.Job { return finishedJob(f) }
	for name, row := range map[string]struct {
		hub, mirror *mirrortest.Job
		want        Verdict
	}{
		"not started":           {progress, job(), Deferred{Why: WhyNotStarted}},
		"awaits the progress":   {progress, job().Suspend(true).True(isSuspend, "", noon), Deferred{Why: WhyAwaitingSeed}},
		"awaits its end":        {job().True(target, "", noon), job().Suspend(true).True(isSuspend, "", noon), Deferred{Why: WhyAwaitingSeed}},
		"being deleted":         {progress, job().Do(deleted).Started(noon).Counted(2, 5), Deferred{Why: WhyDeleting}},
		"failed by a deletion":  {progress, job().Do(deleted).Started(noon).Counted(2, 5).True(failed, "", now.Add(time.Second)), Deferred{Why: WhyDeleting}},
		"nothing new":           {progress, job().Started(noon).Counted(2, 1), Unchanged{}},
		"the end is there":      {ended(complete), ended(complete), Unchanged{}},
		"the end is contested":  {ended(complete), ended(failed), Violation{ruleOutcomeFinal, "the Job has ended on the hub, the mirror doesn't agree"}},
		"the end is taken back": {ended(failed), progress, Violation{ruleOutcomeFinal, "the Job has ended on the hub, the mirror doesn't agree"}},
		"the end is held": {
			job().Started(noon).Pods(0, 0, 1).True(criteria, "", now),
			job().Started(noon).Pods(0, 0, 1).True(criteria, "", now).True(complete, "", now),
			Deferred{Why: WhyPodsRemain, Until: now.Add(90 * time.Second)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Reflect(row.hub.Obj(), row.mirror.Obj(), now)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEndedBeforeDeletion(t *testing.T) {
	m := job().Started(noon).Counted(0, 7).True(failed, "BackoffLimitExceeded", noon).Do(func(j *batchv1.Job) {
		j.DeletionTimestamp = timePtr(now)
	})
	if next, ok := Reflect(job().Obj(), m.Obj(), now).(Next); !ok || !finished(&next.Status) {
		t.Errorf("got %+v", next)
	}
}

func TestChange(t *testing.T) {
	hub := job().Started(noon).Pods(1, 1, 0)
	for want, m := range map[Change]*mirrortest.Job{
		Progress:   job().Started(noon).Pods(2, 1, 0).Counted(1, 1),
		Transition: job().Started(noon).Pods(1, 1, 0).True(target, "", noon),
	} {
		if next, ok := Reflect(hub.Obj(), m.Obj(), now).(Next); !ok || next.Change != want {
			t.Errorf("want %s, got %+v", want, next)
		}
	}
}
