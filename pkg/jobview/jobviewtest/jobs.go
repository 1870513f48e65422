// Package jobviewtest has a Job in each state. All who show states are tested by it, so that they
// show the same.
package jobviewtest

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// Noon is when the Jobs started.
var Noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// Job is a hub Job and the state that it's in.
type Job struct {
	// Name says why it's in that state.
	Name string
	Job  *batchv1.Job
	Want jobview.State
}

// Workers are those that the Jobs are on: west is in touch, south isn't.
func Workers() []*v1alpha1.WorkerCluster {
	return []*v1alpha1.WorkerCluster{worker("west", metav1.ConditionTrue, "Connected"), worker("south", metav1.ConditionFalse, "Unreachable")}
}

func worker(name string, ready metav1.ConditionStatus, reason string) *v1alpha1.WorkerCluster {
	w := &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	w.Status.ObservedGeneration = 1
	w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: reason}}
	return w
}

// Jobs returns at least one Job in each state, made anew.
func Jobs() []Job {
	counts := func(active, ready, succeeded, failed int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Active, j.Status.Ready, j.Status.Succeeded, j.Status.Failed = active, ptr.To(ready), succeeded, failed
		}
	}
	kept := func(changes hubstate.Changes) func(*batchv1.Job) {
		return func(j *batchv1.Job) { hubstate.Set(j, changes) }
	}
	onSouth := kept(hubstate.Changes{hubstate.Cluster: "south"})
	moved := kept(hubstate.Changes{hubstate.MovedFrom: "south", hubstate.MovedAt: Noon.Format(time.RFC3339), hubstate.MovedWith: `{"succeeded":2,"failed":1}`})
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	return []Job{
		aJob("ready", jobview.Running),
		aJob("none ready, but many succeeded", jobview.Running, counts(20, 0, 3131, 0)),
		aJob("tried again", jobview.Running, counts(1, 0, 0, 2)),
		aJob("between two Pods", jobview.Running, counts(0, 0, 1, 0)),
		aJob("placed", jobview.Starting, counts(0, 0, 0, 0)),
		aJob("no Pod ready", jobview.Starting, counts(3, 0, 0, 0)),
		aJob("started where it moved", jobview.Starting, moved, counts(3, 0, 2, 1)),
		aJob("all failed so far", jobview.BackingOff, counts(0, 0, 0, 2)),
		aJob("some succeeded", jobview.BackingOff, counts(0, 0, 3, 2)),
		aJob("failed where it moved", jobview.BackingOff, moved, counts(0, 0, 2, 2)),
		aJob("its Pod ends", jobview.Running, counts(0, 0, 0, 1), func(j *batchv1.Job) { j.Status.Terminating = ptr.To[int32](1) }),
		aJob("moves", jobview.Moving, moved, counts(0, 0, 2, 1)),
		aJob("runs where it moved", jobview.Running, moved, counts(0, 0, 3, 1)),
		aJob("started again from zero", jobview.Running, moved, counts(1, 0, 1, 0)),
		aJob("out of touch", jobview.OutOfTouch, onSouth),
		aJob("out of touch before its start", jobview.OutOfTouch, onSouth, counts(0, 0, 0, 0)),
		aJob("partly out of touch", jobview.Running, kept(hubstate.Changes{hubstate.Shards: "south=0-1;west=2-3"})),
		aJob("ended before", jobview.Complete, onSouth, condition(batchv1.JobComplete), counts(0, 0, 1, 0)),
		aJob("no worker", jobview.Pending, unplaced, counts(0, 0, 0, 0)),
		aJob("parallelism 0", jobview.Paused, counts(0, 0, 1, 0), func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }),
		aJob("suspended", jobview.Suspended, suspended, counts(0, 0, 0, 0)),
		aJob("suspended, without a worker", jobview.Suspended, unplaced, suspended, counts(0, 0, 0, 0)),
		aJob("its Pods end", jobview.Suspending, suspended),
		aJob("deleted", jobview.Deleting, func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.NewTime(Noon)) }),
		aJob("about to complete", jobview.Completing, condition(batchv1.JobSuccessCriteriaMet)),
		aJob("about to fail", jobview.Failing, condition(batchv1.JobFailureTarget)),
		aJob("complete", jobview.Complete, condition(batchv1.JobComplete), counts(0, 0, 1, 0)),
		aJob("failed", jobview.Failed, condition(batchv1.JobFailed), counts(0, 0, 0, 1)),
	}
}

// aJob runs in the worker west since noon.
func aJob(name string, want jobview.State, edits ...func(*batchv1.Job)) Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "job", UID: "uid"},
		Spec:       batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher)},
		Status:     batchv1.JobStatus{StartTime: ptr.To(metav1.NewTime(Noon)), Active: 1, Ready: ptr.To[int32](1)},
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "west"})
	for _, edit := range edits {
		edit(j)
	}
	return Job{name, j, want}
}

func unplaced(j *batchv1.Job) { j.Status = batchv1.JobStatus{} }

func condition(kind batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Reason", LastTransitionTime: metav1.NewTime(Noon.Add(time.Minute)),
		})
	}
}
