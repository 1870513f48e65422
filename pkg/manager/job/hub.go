package job

import (
	"context"
	"errors"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// All writes are merge patches of a hub Job's status, with the UID and the resourceVersion as
// preconditions: they fail on conflict, and leave fields alone that this build doesn't know. Such a
// patch may change the finalizers, too.

// patchPlacement writes what a placement changes, and our finalizer, in one write. It returns the
// whole Job of the answer: its mirror is made from that.
func (r *Reconciler) patchPlacement(ctx context.Context, t *turn, changes hubstate.Changes) (*batchv1.Job, error) {
	write := r.writes.begin(t.Key)
	defer t.endWrite(write)
	next := t.Job.Status
	next.Conditions = changes.Conditions(t.Job, next.Conditions, r.clock.Now())
	patch := mirror.StatusPatch(t.Job, &next, mirror.Finalizers(t.Job, true))
	since := r.guard.Latest()
	whole, err := t.allowance.patchWhole(ctx, t.Job.UID, client.RawPatch(types.MergePatchType, patch))
	if err == nil {
		err = r.checkAnswer(t, since, whole.Job, changes)
	}
	if err != nil {
		return nil, &hubError{err}
	}
	t.record.sawWhole(whole)
	t.record.update(func(*memory) { t.record.forgetLastsLocked() }) // they were of the placement before
	r.wroteHub(t, write, whole.Job)
	return whole.Job, nil
}

// patchStatus patches a hub Job's status, and remembers the answer.
func (r *Reconciler) patchStatus(ctx context.Context, t *turn, patch []byte) error {
	write := r.writes.begin(t.Key)
	defer t.endWrite(write)
	since := r.guard.Latest()
	answer, err := t.allowance.patchStatus(ctx, t.Job.UID, client.RawPatch(types.MergePatchType, patch))
	if err == nil {
		err = r.checkAnswer(t, since, answer, nil)
	}
	if err != nil {
		return &hubError{err}
	}
	r.wroteHub(t, write, answer)
	return nil
}

// endWrite ends a write. An answer that the cache has by now needn't be remembered.
func (t *turn) endWrite(write *hubWrite) {
	if !write.end() {
		return
	}
	t.record.update(func(m *memory) {
		if m.lastWrite.job != nil && m.lastWrite.job.ResourceVersion == write.answer {
			m.lastWrite = ownWrite{}
		}
	})
}

// checkAnswer returns an error if nothing may rest on the hub's answer to a write of some changes.
func (r *Reconciler) checkAnswer(t *turn, since string, answer *batchv1.Job, changes hubstate.Changes) error {
	if err := r.checkNotRestored(t, since, answer); err != nil {
		return err
	}
	return checkStripped(answer, changes)
}

// checkNotRestored returns an error if the hub's answer to a write shows that its etcd was put
// back: the write rests on a state that isn't the last one. since is the latest before the write.
func (r *Reconciler) checkNotRestored(t *turn, since string, answer *batchv1.Job) error {
	if answer.ResourceVersion == t.Job.ResourceVersion {
		return nil // nothing has changed by it
	}
	return r.guard.Compare(since, answer.ResourceVersion)
}

// checkStripped returns an error if the hub's admission has left out what was just written, or what
// every write gives a Job that runs: it would be written again at once, and for ever.
func checkStripped(answer *batchv1.Job, changes hubstate.Changes) error {
	lost := ""
	for key, value := range changes {
		if hubstate.Get(answer, key) != value {
			lost = "the condition " + string(hubstate.Placed) + " or " + string(hubstate.State)
		}
	}
	placed := len(shards.WorkersOf(answer)) > 0 && !mirror.Finished(answer) && answer.DeletionTimestamp == nil
	if placed && !slices.Contains(answer.Finalizers, v1alpha1.FinalizerMirror) {
		lost = "the finalizer " + v1alpha1.FinalizerMirror
	}
	if lost == "" {
		return nil
	}
	return &strippedError{apierrors.NewForbidden(schema.GroupResource{Group: batchv1.GroupName, Resource: "jobs"}, answer.Name,
		errors.New("a policy of the hub removes "+lost+": have it leave "+v1alpha1.KeyPrefix+"* alone"))}
}

func (r *Reconciler) wroteHub(t *turn, write *hubWrite, answer *batchv1.Job) {
	write.answer = answer.ResourceVersion
	now := r.clock.Now()
	r.tracer.Changed(t.Job, answer, now)
	for _, worker := range t.record.wrote(answer, now) {
		r.workers.PlacementsChanged(worker)
	}
	r.enqueueConcerned()
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
func (r *Reconciler) removeFinalizer(ctx context.Context, t *turn, a dispatch.RemoveFinalizer) (result, error) {
	if t.Job.DeletionTimestamp != nil {
		if err := r.removeUnseen(ctx, t); err != nil && !isRefusal(err) {
			return result{}, err
		}
	}
	status, others := &t.Job.Status, mirror.Finalizers(t.Job, false)
	if a.Stopped && len(others) > 0 {
		status = mirror.WithoutPods(status)
	}
	err := r.patchStatus(ctx, t, mirror.StatusPatch(t.Job, status, others))
	if err == nil && t.Job.DeletionTimestamp != nil {
		r.accountant.count(t.Job, t.Account().Closed()) // nobody will write it
	}
	return result{changed: err == nil && len(others) > 0}, client.IgnoreNotFound(err)
}

func named(job *batchv1.Job) *batchv1.Job { return namedBy(keyOf(job)) }

func namedBy(key types.NamespacedName) *batchv1.Job {
	answer := &batchv1.Job{}
	answer.Namespace, answer.Name = key.Namespace, key.Name
	return answer
}
