package mirror

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

func TestUnplaced(t *testing.T) {
	suspendedSince := func(at time.Time) func(*batchv1.Job) {
		return trueFor(isSuspend, reasonSuspended, messageSuspended, at)
	}
	for name, row := range map[string]struct{ hub, want *mirrortest.Job }{
		"waits":             {job(), nil},
		"created suspended": {job().Suspend(true), job().Suspend(true).Pods(0, 0, 0).Do(suspendedSince(now))},
		"suspended still":   {job().Suspend(true).Do(suspendedSince(noon)), nil},
		"suspended, its mirror removed": {
			job().Suspend(true).Started(noon).Pods(2, 2, 1).Counted(1, 1),
			job().Suspend(true).Pods(0, 0, 0).Counted(1, 1).Do(suspendedSince(now)),
		},
		"resumed": {
			job().Do(suspendedSince(noon)),
			job().Do(suspendedFor(corev1.ConditionFalse, reasonResumed, messageResumed, now)),
		},
		"ended": {finishedJob(criteria, complete).Suspend(true), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Unplaced(row.hub.Obj(), now)
			if row.want == nil {
				if got != (Unchanged{}) {
					t.Errorf("got %+v", got)
				}
				return
			}
			next, _ := got.(Next)
			if diff := cmp.Diff(row.want.Obj().Status, next.Status); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSeed(t *testing.T) {
	type row struct {
		hub  *mirrortest.Job
		want *batchv1.JobStatus
	}
	for name, row := range map[string]row{
		"no progress":       {job().Started(noon).Pods(2, 2, 0), nil},
		"counters":          {job().Started(noon).Pods(2, 2, 0).Counted(3, 1), &batchv1.JobStatus{Succeeded: 3, Failed: 1}},
		"a work queue":      {job().WorkQueue(3).Counted(1, 2), nil},
		"indexes":           {indexedJob().Counted(2, 4).CompletedIndexes("0,3").FailedIndexes("2"), &batchv1.JobStatus{Succeeded: 2, Failed: 4, CompletedIndexes: "0,3", FailedIndexes: ptr.To("2")}},
		"indexes, trimmed":  {indexedJob().Indexed(2).Counted(2, 4).CompletedIndexes("0,3"), &batchv1.JobStatus{Succeeded: 1, Failed: 4, CompletedIndexes: "0"}},
		"about to fail":     {job().WorkQueue(3).True(target, "", noon), &job().True(target, "", noon).Obj().Status},
		"suspended earlier": {job().True(isSuspend, "", noon).Counted(0, 1), &batchv1.JobStatus{Failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Seed(row.hub.Obj(), false)
			if ok != (row.want != nil) {
				t.Fatalf("ok is %v", ok)
			}
			if diff := cmp.Diff(ptr.Deref(row.want, batchv1.JobStatus{}), got); diff != "" {
				t.Error(diff)
			}
			if m := job().Obj(); ok == seeded(&m.Status, &got) {
				t.Errorf("an untouched mirror counts as seeded: %v", seeded(&m.Status, &got))
			}
		})
	}
}

// A mirror that was put back to an earlier state gets what both know. What can't be brought
// together is left to the rules.
func TestForgot(t *testing.T) {
	stopped := func(j *mirrortest.Job) *batchv1.Job { return j.Suspend(true).True(isSuspend, "", noon).Obj() }
	hub := job().Indexed(4).CompletedIndexes("0-2").Obj()
	m := stopped(job().Indexed(4).CompletedIndexes("0,3"))
	if seed, due := SeedDue(hub, m); !due || seed.CompletedIndexes != "0-3" || seed.Succeeded != 4 {
		t.Errorf("due: %v, seed: %+v", due, seed)
	}
	if m := stopped(job().Indexed(4).CompletedIndexes("0-3").Counted(4, 0)); Forgot(hub, m) {
		t.Error("it knows more, and has forgotten something")
	}
	failed := job().Indexed(4).CompletedIndexes("0").FailedIndexes("3").Obj()
	if m := stopped(job().Indexed(4).CompletedIndexes("0,3").Counted(2, 0)); Forgot(failed, m) {
		t.Error("an index that had failed has completed: that can't be brought together")
	}
}
