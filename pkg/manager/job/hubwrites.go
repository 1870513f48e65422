package job

import (
	"context"
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// patchJob patches a hub Job, and remembers the answer.
func (r *Reconciler) patchJob(ctx context.Context, job *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	answer := named(job)
	if err := r.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, err
	}
	if !isLast(answer) {
		r.remember(answer)
	}
	return answer, nil
}

// isLast says whether an API server's answer is the last there is of a Job: nothing holds it any
// more. The watch may have told of its end before the answer was read, and who remembered it then
// would keep its place for ever.
func isLast(answer *batchv1.Job) bool {
	return answer.DeletionTimestamp != nil && len(answer.Finalizers) == 0
}

// patchStatus patches a hub Job's status, and remembers the answer.
func (r *Reconciler) patchStatus(ctx context.Context, job *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	answer, began := named(job), r.clock.Now()
	err := r.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch))
	now := r.clock.Now()
	r.pace.Took(now.Sub(began), now, err)
	if err != nil {
		return nil, err
	}
	r.remember(answer)
	return answer, nil
}

func (r *Reconciler) remember(answer *batchv1.Job) {
	mirror.Slim(answer)
	r.hub.Wrote(answer, r.clock.Now())
	r.index(answer)
}

// index takes a hub Job over into the index of placements.
func (r *Reconciler) index(job *batchv1.Job) {
	before, after := r.placements.Set(job)
	if before == after {
		return
	}
	for _, worker := range []string{before.worker, after.worker} {
		if worker != "" {
			r.workers.PlacementsChanged(worker)
		}
	}
}

func named(job *batchv1.Job) *batchv1.Job {
	answer := &batchv1.Job{}
	answer.Namespace, answer.Name = job.Namespace, job.Name
	return answer
}

// exactly is the part of a merge patch that makes it fail unless the object is still as it was
// seen. Lists in merge patches are replaced as a whole, so the finalizers need it.
func exactly(job *batchv1.Job) map[string]any {
	return map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion}
}

// placementPatch writes a hub Job's placement down, and adds our finalizer, in one write. A move is
// nil if the Job isn't moved.
func placementPatch(job *batchv1.Job, worker string, move *mirror.Move) []byte {
	meta := exactly(job)
	meta["annotations"] = mirror.PlacementAnnotations(job, worker, move)
	if !slices.Contains(job.Finalizers, v1alpha1.FinalizerMirror) {
		meta["finalizers"] = append(slices.Clone(job.Finalizers), v1alpha1.FinalizerMirror)
	}
	return metadataPatch(meta)
}

// letGoPatch takes our finalizer off a hub Job.
func letGoPatch(job *batchv1.Job) []byte {
	meta := exactly(job)
	meta["finalizers"] = slices.DeleteFunc(slices.Clone(job.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerMirror })
	return metadataPatch(meta)
}

// disownPatch takes the marks of a mirror off a Job in a worker.
func disownPatch(job *batchv1.Job) []byte {
	meta := exactly(job)
	meta["labels"] = map[string]any{v1alpha1.LabelOrigin: nil}
	meta["annotations"] = map[string]any{v1alpha1.AnnotationHubUID: nil, v1alpha1.AnnotationProjected: nil}
	return metadataPatch(meta)
}

func metadataPatch(meta map[string]any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		panic(err) // strings and lists of strings
	}
	return patch
}
