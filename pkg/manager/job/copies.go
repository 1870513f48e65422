package job

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// liveJob reads a hub Job past the cache; nil: there is none any more, or another one of its name.
// What stops a copy, has one go on after a fence, or makes another one of a Job that ran, never
// rests on the cache alone, nor does any copy that is made just after the process stood still.
func (r *Reconciler) liveJob(ctx context.Context, s *dispatch.Snapshot) (*batchv1.Job, error) {
	var job batchv1.Job
	if err := r.live.Get(ctx, s.Key, &job); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if s.Job == nil || job.UID != s.Job.UID {
		return nil, nil
	}
	return &job, nil
}

// placedOn asks the hub itself where a Job is placed; nil: there is no such Job any more.
func (r *Reconciler) placedOn(ctx context.Context, s *dispatch.Snapshot) (*string, error) {
	job, err := r.liveJob(ctx, s)
	if job == nil {
		return nil, err
	}
	worker := job.Annotations[v1alpha1.AnnotationCluster]
	return &worker, nil
}

// isWanted asks the hub itself whether a Job shall run on this worker.
func (r *Reconciler) isWanted(ctx context.Context, s *dispatch.Snapshot, worker string) (bool, error) {
	job, err := r.liveJob(ctx, s)
	return job != nil && job.DeletionTimestamp == nil && !mirror.Finished(job) &&
		job.Annotations[v1alpha1.AnnotationCluster] == worker, err
}

// suspendMirror stops a copy of a Job that isn't at home.
func (r *Reconciler) suspendMirror(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.SuspendMirror) (outcome, error) {
	at, err := r.placedOn(ctx, s)
	if err != nil || at == nil || *at == w.Name() {
		return outcome{}, err // the cache was behind: its next event brings the Job back
	}
	return r.patchCopy(ctx, w, a.Mirror, mirror.SuspendPatch(a.Mirror))
}

// confirmMirror lets a Job go on that the worker's Job controller has fenced.
func (r *Reconciler) confirmMirror(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.ConfirmMirror) (outcome, error) {
	at, err := r.placedOn(ctx, s)
	if err != nil || at == nil || *at != w.Name() {
		return outcome{}, err // likewise
	}
	return r.patchCopy(ctx, w, a.Mirror, mirror.ConfirmPatch(a.Mirror))
}

func (r *Reconciler) patchCopy(ctx context.Context, w *clusters.Worker, m *batchv1.Job, patch []byte) (outcome, error) {
	answer := named(m)
	if err := w.Client().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return outcome{}, &workerError{w.Name(), err}
	}
	r.wrote(w, answer)
	return outcome{changed: true}, nil
}

// repeated is what a copy has completed that is made again elsewhere.
func (r *Reconciler) repeated(s *dispatch.Snapshot, w *clusters.Worker, a dispatch.DeleteMirror) mirror.Repeated {
	if !a.Repeats || s.Job == nil {
		return mirror.Repeated{}
	}
	last := a.Mirror
	if newer := r.mirrorIn(w, s.Key, r.clock.Now()); newer != nil && newer.UID == last.UID {
		last = newer
	}
	return mirror.RepeatedBy(s.Job, last)
}

// ranTwice counts and tells what a copy completed after its Job had been moved on.
func (r *Reconciler) ranTwice(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, twice mirror.Repeated) outcome {
	if twice.Completions == 0 {
		return outcome{}
	}
	duplicatesTotal.WithLabelValues(w.Name()).Add(float64(twice.Completions))
	message := fmt.Sprintf("Worker %s made %d completions that the hub didn't hear of before the Job was moved on; they are made twice",
		w.Name(), twice.Completions)
	if twice.Indexes != "" {
		message += ": indexes " + twice.Indexes
	}
	return r.tell(ctx, s, dispatch.Report{Reason: v1alpha1.EventRanTwice, Warning: true, Message: message})
}
