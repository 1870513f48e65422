package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// The watch of a worker's mirrors shows none that lacks its marks: the label and the annotation
// that say which hub Job it stands for. Policies and people remove them, and the mirror runs on.

// takeExisting remembers the Job that has the mirror's name already, unless it isn't ours. A mirror
// that has lost its marks gets them again.
func (r *Reconciler) takeExisting(ctx context.Context, t *turn, w worker) (result, error) {
	existing, err := existingIn(ctx, t, w)
	switch {
	case err != nil:
		return result{}, err
	case existing == nil:
		return result{changed: true, void: true}, nil // gone meanwhile: create it again
	case mirror.Owns(r.options.Origin, t.Job.UID, existing) != mirror.Foreign:
		return changed, r.wroteMirror(t.record, w, existing)
	case r.isUnmarked(t, w, existing):
		return r.mark(ctx, t, w, existing)
	default:
		return result{}, &refusalError{worker: w.Name(), reason: v1alpha1.EventConflict,
			text: "has a Job " + t.Key.String() + " that isn't ours; it is left alone", blocker: foreignJob(t.Key, existing.UID)}
	}
}

// existingIn reads the Job of this name from a worker; nil: there is none.
func existingIn(ctx context.Context, t *turn, w worker) (*batchv1.Job, error) {
	var existing batchv1.Job
	err := w.Client().Get(ctx, t.Key, &existing)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, &workerError{w.Name(), err}
	default:
		return &existing, nil
	}
}

// isUnmarked reports whether a Job in a worker is the hub Job's mirror, and lacks a mark. The hub
// Job's account has the mirrors' UIDs, too, also after a restart. A worker that is removed may keep
// its mirrors: we have taken their marks away.
func (r *Reconciler) isUnmarked(t *turn, w worker, existing *batchv1.Job) bool {
	if view := w.View(); view.Removing && view.Spec.RemovalPolicy == v1alpha1.RemovalOrphan {
		return false
	}
	known := []types.UID{t.known.mirrors[w.Name()].created, t.Accounted.Of(usage.ID{Worker: w.Name(), UID: existing.UID}).UID}
	return mirror.IsUnmarked(r.options.Origin, t.Job.UID, existing, known)
}

// ofHub are the annotations of a mirror that its Job controller doesn't write.
var ofHub = []string{
	v1alpha1.AnnotationProjected, v1alpha1.AnnotationFreshStart, v1alpha1.AnnotationDeadlineSpent, v1alpha1.AnnotationIndexes,
}

// mark gives a mirror its marks again. One that can't have them would run unseen: it's taken back.
func (r *Reconciler) mark(ctx context.Context, t *turn, w worker, existing *batchv1.Job) (result, error) {
	if existing.DeletionTimestamp != nil && !mirror.AwaitsEnd(existing) {
		return result{}, leavingError(w)
	}
	annotations := map[string]any{v1alpha1.AnnotationHubUID: string(t.Job.UID)}
	if last := t.known.mirrors[w.Name()].last; last != nil && last.UID == existing.UID {
		for _, key := range ofHub {
			if value, had := last.Annotations[key]; had && existing.Annotations[key] == "" {
				annotations[key] = value
			}
		}
	}
	answer, err := sendPatch(ctx, w, existing, marksPatch(existing,
		map[string]any{v1alpha1.LabelOrigin: string(r.options.Origin)}, annotations))
	switch {
	case isRefusal(err):
		return result{}, r.takeBack(ctx, t, w, existing, "keeps the mirror from having its marks")
	case err != nil:
		return result{}, err
	case mirror.Owns(r.options.Origin, t.Job.UID, answer) != mirror.Ours:
		return result{}, r.takeBack(ctx, t, w, answer, removesText([]string{v1alpha1.LabelOrigin, v1alpha1.AnnotationHubUID}))
	}
	done := r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventDrift, Warning: true,
		Message: "Worker " + w.Name() + ": the label or annotation by which the Job is found there was removed, and is there again"})
	done.changed, done.void = true, true // nothing was created, or is done again
	return done, r.wroteMirror(t.record, w, answer)
}

// missingMarks are the labels and annotations of Jobferry's that a worker has left out of a mirror.
func missingMarks(sent, answer *batchv1.Job) (keys []string) {
	if answer.Labels[v1alpha1.LabelOrigin] != sent.Labels[v1alpha1.LabelOrigin] {
		keys = append(keys, v1alpha1.LabelOrigin)
	}
	for _, key := range slices.Sorted(maps.Keys(sent.Annotations)) {
		value, has := answer.Annotations[key]
		if strings.HasPrefix(key, v1alpha1.KeyPrefix) && !has || key == v1alpha1.AnnotationHubUID && value != sent.Annotations[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// removesText is why a mirror is taken back that lacks marks.
func removesText(marks []string) string {
	return "removes " + strings.Join(marks, ", ") + " from Jobs, without which a mirror can't be followed: " +
		"look for a policy there, and have it leave " + v1alpha1.KeyPrefix + "* alone"
}

// givesAwayText is why a mirror is taken back that another Job controller has than the hub asked
// for: that can't change any more.
const givesAwayText = "changes spec.managedBy of Jobs, so that another Job controller has them, or none: look for a policy there"

// stripsPodsText is why a mirror is taken back of which the Job controller doesn't find its Pods.
const stripsPodsText = "removes the label " + v1alpha1.LabelMirrorID + " from Pods, without which their Job controller doesn't find them, " +
	"and makes more and more: look for a policy there, and have it leave " + v1alpha1.KeyPrefix + "* alone. Pods that were made stay"

// takeBack removes a mirror that can't be followed. The worker is passed over when the mirror and
// its Pods are gone, or the Job would run twice.
func (r *Reconciler) takeBack(ctx context.Context, t *turn, w worker, taken *batchv1.Job, why string) error {
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.created, m.takenBack = taken.UID, why })
	return r.leave(ctx, t, w, taken.UID, why)
}

// leave passes over a worker from which a mirror is taken back, once it's gone.
func (r *Reconciler) leave(ctx context.Context, t *turn, w worker, taken types.UID, why string) error {
	existing, err := existingIn(ctx, t, w)
	switch {
	case err != nil:
		return err
	case existing == nil || existing.UID != taken:
		t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.takenBack, m.isMissed = "", false })
		return &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused, text: why}
	case existing.DeletionTimestamp == nil:
		err = r.stopTaken(ctx, t, w, existing)
	default:
		err = r.deleteUnseen(ctx, t, w, existing, metav1.DeletePropagationForeground)
	}
	if err != nil {
		return &workerError{w.Name(), fmt.Errorf("it %s, and doesn't delete it: %w", why, err)}
	}
	r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventMirrorRefused, Warning: true,
		Message: "Worker " + w.Name() + ": " + why + "; it's being deleted there"})
	return leavingError(w)
}

// stopTaken suspends a mirror that is taken back, and deletes it when it has stopped or ended: its
// Job controller has confirmed then that it makes no more Pods. What they did is remembered for the
// hub, which knows it before the mirror goes: this process may end. One that can't be suspended is
// deleted at once, and so is one that nobody has started whom the hub knows: perhaps nobody ever
// confirms anything.
func (r *Reconciler) stopTaken(ctx context.Context, t *turn, w worker, taken *batchv1.Job) error {
	if !mirror.Finished(taken) && !mirror.Suspended(taken) {
		if _, err := sendPatch(ctx, w, taken, mirror.SuspendPatch(taken)); !isRefusal(err) {
			return err
		}
	} else if !mirror.Finished(taken) && !mirror.Stopped(taken) && (taken.Status.StartTime != nil || mirror.IsFor(w.View().Spec.JobController, taken)) {
		return nil
	}
	known := t.known.mirrors[w.Name()].last
	isNew := known == nil || known.ResourceVersion != taken.ResourceVersion
	if r.rememberTaken(t, w, taken) && isNew && (mirror.Stopped(taken) || mirror.Finished(taken)) {
		return nil
	}
	return r.deleteUnseen(ctx, t, w, taken, metav1.DeletePropagationForeground)
}

// rememberTaken remembers what a mirror that is taken back did, unless that is too large.
func (r *Reconciler) rememberTaken(t *turn, w worker, taken *batchv1.Job) (held bool) {
	slim := *taken // before it's copied: it may be large
	mirror.SlimMirror(&slim)
	last := lastStateOf(&slim)
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) {
		if held = last.holdLocked(r.store, w.Name(), m); held {
			metav1.SetMetaDataLabel(&m.last.ObjectMeta, v1alpha1.LabelOrigin, string(r.options.Origin))
			metav1.SetMetaDataAnnotation(&m.last.ObjectMeta, v1alpha1.AnnotationHubUID, string(t.Job.UID))
		}
	})
	return held
}

// deleteByUID is deleteUnseen for a mirror of which the UID is known, and no more.
func (r *Reconciler) deleteByUID(ctx context.Context, t *turn, w worker, uid types.UID, propagation metav1.DeletionPropagation) error {
	existing, err := existingIn(ctx, t, w)
	if err != nil || existing == nil || existing.UID != uid {
		return err
	}
	return r.deleteUnseen(ctx, t, w, existing, propagation)
}

// deleteUnseen deletes a mirror that no watch shows, and that a live read has.
func (r *Reconciler) deleteUnseen(ctx context.Context, t *turn, w worker, existing *batchv1.Job, propagation metav1.DeletionPropagation) error {
	if existing.DeletionTimestamp == nil {
		err := w.Client().Delete(ctx, existing, client.Preconditions{UID: &existing.UID}, client.PropagationPolicy(propagation))
		if err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if !mirror.AwaitsEnd(existing) {
		return nil
	}
	latest, err := existingIn(ctx, t, w) // the deletion has changed it
	if err != nil || latest == nil || latest.UID != existing.UID {
		return err
	}
	_, err = sendPatch(ctx, w, latest, mirror.LetGoPatch(latest))
	return client.IgnoreNotFound(err)
}

// unseen are the workers that may have a mirror which no watch shows: one that is being taken back,
// or that has lost its marks.
func (t *turn) unseen() []string {
	unseen := map[string]struct{}{}
	for name := range t.known.mirrors {
		if t.known.mirrors[name].takenBack != "" {
			unseen[name] = struct{}{}
		}
	}
	for _, w := range t.AssignedWorkers() {
		if w.Synced && w.Mirror == nil {
			unseen[w.Name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(unseen))
}

// seekAllUnseen has the mirrors looked for that no watch shows, once their Job has ended.
func (r *Reconciler) seekAllUnseen(t *turn) {
	for _, name := range t.unseen() {
		t.record.updateMirror(name, func(m *mirrorMemory) { m.isSought = true })
	}
}

// removeUnseen deletes the mirrors that no watch shows, as their Job is deleted. The Job waits for
// the workers that it's placed on, unless they have had their time, and for no others. What is left
// is orphaned: see Gone, and enqueueUnmarked.
func (r *Reconciler) removeUnseen(ctx context.Context, t *turn) error {
	placed, mirrors := shards.WorkersOf(t.Job), t.record.read(t.Now).mirrors
	for _, name := range t.unseen() {
		w, registered := r.workers.get(name)
		if !registered || mirrors[name].unreleased {
			continue
		}
		err := r.inShare(ctx, t, w, func(ctx context.Context) error { return r.removeUnseenIn(ctx, t, w) })
		if err != nil && slices.Contains(placed, name) && !apierrors.IsConflict(err) && !errors.Is(err, clusters.ErrNotConnected) {
			return &workerError{name, err}
		}
	}
	return nil
}

func (r *Reconciler) removeUnseenIn(ctx context.Context, t *turn, w worker) error {
	existing, err := existingIn(ctx, t, w)
	if m := t.known.mirrors[w.Name()]; existing != nil && (m.isTakingBack(existing.UID) || r.isUnmarked(t, w, existing)) {
		err = r.deleteUnseen(ctx, t, w, existing, metav1.DeletePropagationForeground)
	}
	return err
}

// seekUnmarked looks for a mirror without marks, of which its Pods say that it's one, or the hub
// Job's account. Pods may be made up by whoever makes some in the worker: what counts is the Job
// itself. If this fails, and the hub has no such Job, its Pods say it again.
func (r *Reconciler) seekUnmarked(ctx context.Context, t *turn, w worker) (result, error) {
	found := func() { t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.isSought = false }) }
	if t.Job == nil {
		found()
	}
	existing, err := existingIn(ctx, t, w)
	if err == nil && existing != nil {
		err = r.takeUnmarked(ctx, t, w, existing)
	}
	if err == nil {
		found()
	}
	return changed, err
}

// takeUnmarked gives a mirror its marks again, or deletes it if its hub Job is gone, or has ended
// and the mirror can't have them.
func (r *Reconciler) takeUnmarked(ctx context.Context, t *turn, w worker, existing *batchv1.Job) error {
	known := t.known.mirrors[w.Name()]
	isTaken := known.isTakingBack(existing.UID)
	switch {
	case t.Job == nil || !isTaken && !r.isUnmarked(t, w, existing):
		return r.deleteAbandoned(ctx, t, w, existing)
	case !isTaken:
		_, err := r.mark(ctx, t, w, existing)
		if refusal := (*refusalError)(nil); !mirror.Finished(t.Job) || !errors.As(err, &refusal) && !errors.Is(err, errLeaving) {
			return err
		}
	case !mirror.Finished(t.Job):
		return nil // the turns of its Job do that
	}
	return r.deleteUnseen(ctx, t, w, existing, metav1.DeletePropagationForeground)
}

// deleteAbandoned deletes a mirror without marks, if it was made for a hub Job that is gone.
func (r *Reconciler) deleteAbandoned(ctx context.Context, t *turn, w worker, existing *batchv1.Job) error {
	uid := mirror.MadeFor(r.options.Origin, existing)
	if uid == "" || !mirror.IsUnmarked(r.options.Origin, uid, existing, nil) {
		return nil
	}
	if gone, err := r.isGone(ctx, t.Key, uid); err != nil || !gone {
		return err
	}
	if err := r.guard.Check(ctx); err != nil {
		return err
	}
	return r.deleteUnseen(ctx, t, w, existing, metav1.DeletePropagationForeground)
}

// leavingError is the error for a mirror that is being deleted, and that no watch shows.
func leavingError(w worker) error { return &workerError{w.Name(), errLeaving} }
