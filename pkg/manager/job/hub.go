package job

import (
	"context"
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// All writes are merge patches with the UID, and where lists are replaced or a placement is written
// with the resourceVersion, as precondition: they fail on conflict, and leave fields alone that
// this build doesn't know.

// patchJob patches a hub Job, and remembers the answer.
func (r *Reconciler) patchJob(ctx context.Context, t *turn, patch []byte) (*batchv1.Job, error) {
	answer, err := t.whole.patch(ctx, t.Job.UID, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		return nil, &hubError{err}
	}
	r.wroteHub(t, answer)
	return answer, nil
}

// patchPlacement is patchJob with the whole Job in the answer: its mirror is made from that.
func (r *Reconciler) patchPlacement(ctx context.Context, t *turn, patch []byte) (*batchv1.Job, error) {
	whole, err := t.whole.patchWhole(ctx, t.Job.UID, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		return nil, &hubError{err}
	}
	t.record.sawWhole(whole)
	r.wroteHub(t, whole.Job)
	return whole.Job, nil
}

// patchStatus patches a hub Job's status, and remembers the answer.
func (r *Reconciler) patchStatus(ctx context.Context, t *turn, patch []byte) error {
	r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	answer, err := t.whole.patchStatus(ctx, t.Job.UID, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		return &hubError{err}
	}
	r.wroteHub(t, answer)
	return nil
}

func (r *Reconciler) wroteHub(t *turn, answer *batchv1.Job) {
	now := r.clock.Now()
	r.tracer.Changed(t.Job, answer, now)
	for _, worker := range t.record.wrote(answer, now) {
		r.workers.PlacementsChanged(worker)
	}
}

// statusRejected counts a status that the hub rejected; pkg/mirror should have known. It isn't
// tried again, and delays nothing else.
func (r *Reconciler) statusRejected(ctx context.Context, t *turn, err error) result {
	done := r.tell(ctx, t, dispatch.Report{
		Reason: v1alpha1.EventStatusRejected, Warning: true, Rule: dispatch.RuleHub,
		Message: "The hub's API server rejected the next status: " + err.Error(),
	})
	var mirrors []*batchv1.Job
	for _, w := range t.AssignedWorkers() {
		if w.Mirror != nil {
			mirrors = append(mirrors, w.Mirror)
		}
	}
	if shown := t.Reflected(); shown != nil && shown.Mirror != nil {
		t.record.updateMirror(shown.Name, func(m *mirrorMemory) { m.rejected = states(t.Job, shown.Mirror) })
		done.changed = true
	} else if t.Divided != nil {
		t.record.update(func(m *memory) { m.rejected = states(t.Job, mirrors...) })
		done.changed = true
	}
	return done
}

// removeFinalizer removes our finalizer from a hub Job.
func (r *Reconciler) removeFinalizer(ctx context.Context, t *turn) (result, error) {
	meta := exactly(t.Job)
	meta["finalizers"] = slices.DeleteFunc(slices.Clone(t.Job.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerMirror })
	_, err := r.patchJob(ctx, t, metadataPatch(meta))
	if err == nil && t.Job.DeletionTimestamp != nil {
		r.accountant.count(t.Job, t.Account().Closed()) // nobody will write it
	}
	return result{}, client.IgnoreNotFound(err)
}

func named(job *batchv1.Job) *batchv1.Job { return namedBy(keyOf(job)) }

func namedBy(key types.NamespacedName) *batchv1.Job {
	answer := &batchv1.Job{}
	answer.Namespace, answer.Name = key.Namespace, key.Name
	return answer
}

// exactly is the part of a merge patch that makes it fail unless the object is still as it was
// seen. Lists in merge patches are replaced as a whole, so the finalizers need it.
func exactly(job *batchv1.Job) map[string]any {
	return map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion}
}

// placementPatch writes a hub Job's placement, and adds our finalizer, in one write.
func placementPatch(job *batchv1.Job, annotations map[string]any) []byte {
	meta := exactly(job)
	meta["annotations"] = annotations
	if !slices.Contains(job.Finalizers, v1alpha1.FinalizerMirror) {
		meta["finalizers"] = append(slices.Clone(job.Finalizers), v1alpha1.FinalizerMirror)
	}
	return metadataPatch(meta)
}

func metadataPatch(meta map[string]any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		panic(err) // strings and lists of strings
	}
	return patch
}
