package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// confirmLeft reads from a worker whether it still has a mirror that its cache doesn't show: that
// may be behind, just after it was reconnected, or the mirror has lost its marks. One that is found
// is remembered.
func (r *Reconciler) confirmLeft(ctx context.Context, t *turn, w worker) (done result, err error) {
	m := t.known.mirrors[w.Name()]
	if m.takenBack != "" {
		return result{}, r.leave(ctx, t, w, m.created, m.takenBack)
	}
	var existing *batchv1.Job
	if !m.neverHad {
		existing, err = existingIn(ctx, t, w)
	}
	switch {
	case err != nil || existing == nil:
	case mirror.Owns(r.options.Origin, t.Job.UID, existing) == mirror.Ours:
		done, err = result{changed: true, void: true}, r.wroteMirror(t.record, w, existing)
	case r.isUnmarked(t, w, existing):
		done, err = r.mark(ctx, t, w, existing)
	}
	if err == nil && !done.void {
		done.changed = t.endRelease(w) || done.changed
	}
	if err == nil && (m.isMissed || !m.isConfirmed) {
		t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.isMissed, m.isConfirmed = false, true })
		done.changed = done.changed || m.isMissed || t.Part != nil || t.Group.ID != (group.ID{})
	}
	return done, err
}

// endRelease ends the time of a worker that has said that it has no mirror, if it was late: nothing
// waits for it any more. Else the time goes on, or it would begin anew with the next look.
func (t *turn) endRelease(w worker) (ends bool) {
	if t.known.mirrors[w.Name()].release == (releaseClock{}) || slices.Contains(t.Job.Finalizers, v1alpha1.FinalizerMirror) {
		return false
	}
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.release = releaseClock{} })
	return true
}

func createsNamespaces(w worker) bool { return ptr.Deref(w.View().Spec.CreateNamespaces, true) }

// createNamespace makes the namespace of a Job in a worker, with the Pod Security labels of the
// hub's. The labels of one that is there are never changed: they are the worker's.
func (r *Reconciler) createNamespace(ctx context.Context, w worker, name string) error {
	labels := r.options.DefaultPodSecurity.Labels(r.hubNamespaces.labels(ctx, name))
	labels["app.kubernetes.io/managed-by"] = "jobferry"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	return client.IgnoreAlreadyExists(w.Client().Create(ctx, namespace))
}

// refusalOf tells the errors after which the worker can't take the Job from those after which to
// try again.
func refusalOf(w worker, namespace string, err error) error {
	refusal := &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused, blocker: blockerOf(w, namespace, err), outright: true}
	switch {
	case apierrors.IsNotFound(err):
		refusal.text = "has no namespace " + namespace + ", and its WorkerCluster doesn't let Jobferry create it (spec.createNamespaces)"
	case isRefusal(err):
		refusal.text = "refused the Job: " + err.Error()
	default:
		return &workerError{w.Name(), err}
	}
	return refusal
}

// seedMirror writes the progress made elsewhere into a mirror that hasn't started.
func (r *Reconciler) seedMirror(ctx context.Context, t *turn, w worker, a dispatch.SeedMirror) (result, error) {
	answer := named(a.Mirror)
	patch := client.RawPatch(types.MergePatchType, mirror.SeedPatch(a.Mirror, &a.Status))
	if err := w.Client().Status().Patch(ctx, answer, patch); err != nil {
		return result{}, &workerError{w.Name(), err}
	}
	t.countPatch(w, r.clock.Now()) // somebody in the worker may take it back
	return changed, r.wroteMirror(t.record, w, answer)
}

// patchMirror changes a mirror in place, and remembers what the worker's admission changed back at
// once. What lets Pods start needs the hub's word, as the mirror's creation does.
func (r *Reconciler) patchMirror(ctx context.Context, t *turn, w worker, a dispatch.PatchMirror) (result, error) {
	if a.Patch.Starts() {
		if err := r.verifyWanted(ctx, t, w.Name()); err != nil {
			return result{}, err
		}
	}
	answer, err := sendPatch(ctx, w, a.Mirror, a.Patch.Bytes())
	now := r.clock.Now()
	var unmet []mirror.Note
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		unmet = []mirror.Note{{Field: "spec", Message: "refused: " + text.Clean(errors.Unwrap(err).Error(), text.MaxMessage)}}
	case err != nil:
		return result{}, err
	default:
		unmet = a.Patch.Unmet(answer) // before it's slimmed
		t.countPatch(w, now)
	}
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) {
		if len(unmet) > 0 {
			m.unmet = m.unmet.Again(a.Patch.Diff(), unmet, now)
		} else {
			m.unmet = dispatch.Unmet{}
		}
	})
	if err != nil {
		return changed, nil
	}
	return changed, r.wroteMirror(t.record, w, answer)
}

// suspendMirror suspends a mirror that is stale, that of a shard, or one that has lost progress.
func (r *Reconciler) suspendMirror(ctx context.Context, t *turn, w worker, a dispatch.SuspendMirror) (result, error) {
	patch := mirror.SuspendPatch(a.Mirror)
	if a.Exactly {
		patch = mirror.SuspendExactly(a.Mirror)
	} else {
		job, err := t.liveJob(ctx)
		wanted := t.Part != nil && job != nil && t.isPlacedAlike(job, w.Name())
		if stale := job != nil && !shards.IsOn(job, w.Name()); err != nil || !stale && !wanted {
			return void, err // the cache was behind: its next event enqueues the Job
		}
	}
	done, err := r.patchAndRemember(ctx, t, w, a.Mirror, patch)
	if a.Exactly && apierrors.IsConflict(err) {
		return void, nil // likewise
	}
	return done, err
}

// unfenceMirror lets a Job continue that the worker's Job controller has fenced.
func (r *Reconciler) unfenceMirror(ctx context.Context, t *turn, w worker, a dispatch.UnfenceMirror) (result, error) {
	job, err := t.liveJob(ctx)
	if err != nil || job == nil || !t.isPlacedAlike(job, w.Name()) {
		return void, err // likewise
	}
	return r.patchAndRemember(ctx, t, w, a.Mirror, mirror.ConfirmPatch(a.Mirror))
}

// patchAndRemember counts a patch, and remembers the answer.
func (r *Reconciler) patchAndRemember(ctx context.Context, t *turn, w worker, m *batchv1.Job, patch []byte) (result, error) {
	answer, err := sendPatch(ctx, w, m, patch)
	if err != nil {
		return result{}, err
	}
	t.countPatch(w, r.clock.Now())
	return changed, r.wroteMirror(t.record, w, answer)
}

func sendPatch(ctx context.Context, w worker, m *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	answer := named(m)
	if err := w.Client().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, &workerError{w.Name(), err}
	}
	return answer, nil
}

// marksPatch is the merge patch of a mirror's labels and annotations, which fails unless the mirror
// is as it was seen.
func marksPatch(m *batchv1.Job, labels, annotations map[string]any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": m.UID, "resourceVersion": m.ResourceVersion, "labels": labels, "annotations": annotations,
	}})
	if err != nil {
		panic(err) // strings
	}
	return patch
}

// disownMirror removes the marks of a mirror from a Job in a worker.
func (r *Reconciler) disownMirror(ctx context.Context, t *turn, w worker, a dispatch.DisownMirror) (result, error) {
	left, err := a.Mirror, error(nil)
	if mirror.AwaitsEnd(left) {
		left, err = r.letGo(ctx, t, w, left)
	}
	if err != nil {
		return result{changed: apierrors.IsNotFound(err)}, client.IgnoreNotFound(err)
	}
	patch := marksPatch(left,
		map[string]any{v1alpha1.LabelOrigin: nil},
		map[string]any{v1alpha1.AnnotationHubUID: nil, v1alpha1.AnnotationProjected: nil, v1alpha1.AnnotationLeft: "true"})
	if _, err := sendPatch(ctx, w, left, patch); err != nil {
		return result{changed: apierrors.IsNotFound(err)}, client.IgnoreNotFound(err)
	}
	done := r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventMirrorOrphaned,
		Message: "Left in worker " + w.Name() + ", which is being removed: it continues there by itself"})
	done.changed = true
	return done, nil
}

// letGo removes the finalizer from a mirror that was kept until the hub knows its end.
func (r *Reconciler) letGo(ctx context.Context, t *turn, w worker, m *batchv1.Job) (*batchv1.Job, error) {
	answer, err := sendPatch(ctx, w, m, mirror.LetGoPatch(m))
	if err == nil && (answer.DeletionTimestamp == nil || len(answer.Finalizers) > 0) {
		return answer, r.wroteMirror(t.record, w, answer)
	}
	if client.IgnoreNotFound(err) == nil {
		now := r.clock.Now()
		t.record.updateMirror(w.Name(), func(memory *mirrorMemory) { memory.write = ownWrite{deleted: m.UID, isGone: true, at: now} })
	}
	return answer, err
}

// wroteMirror remembers a mirror as its worker answered. If there's no room for it, even without
// what is large in it, the next turn waits for the worker's watch to show it. A worker that makes
// one that is too large can't take the Job: an API server's have about the size of what was sent.
// One that has removed the mirror's marks with the write shows the mirror no more.
func (r *Reconciler) wroteMirror(rec *record, w worker, answer *batchv1.Job) error {
	mirror.SlimMirror(answer)
	if answer.Labels[v1alpha1.LabelOrigin] == "" || mirror.HubUID(answer) == "" {
		rec.updateMirror(w.Name(), func(m *mirrorMemory) { m.isMissed, m.write = true, ownWrite{} })
		return nil
	}
	size := decoded.Size(answer)
	if size > maxWithAnswer {
		return &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused,
			text: fmt.Sprintf("answers with Jobs that are too large to be remembered, the last one with %d bytes", size)}
	}
	if !rec.holdAnswer(w.Name(), answer, size, r.clock.Now()) {
		return &workerError{w.Name(), errUnshown}
	}
	return nil
}

// failedCreate is the reason of the events of Job controllers, built-in and embedded, about Pods
// that they couldn't create.
const failedCreate = "FailedCreate"

// readErrors reads from a worker's events why a mirror has no Pods: quotas, admission and missing
// objects show nowhere else; or why a Pod of it isn't prepared: nor do volumes. They are read once
// for a mirror or Pod.
func (r *Reconciler) readErrors(ctx context.Context, t *turn, w worker, a dispatch.ReadErrors) (result, error) {
	about, of := a.Mirror.UID, fields.Set{"reason": failedCreate}
	if a.Pod != "" {
		about, of = a.Pod, fields.Set{"type": corev1.EventTypeWarning}
	}
	of["involvedObject.uid"] = string(about)
	var events corev1.EventList
	err := w.Client().List(ctx, &events, client.InNamespace(a.Mirror.Namespace), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(of)})
	answer := latestMessage(events.Items, t.saidSince(w, a.Mirror))
	switch {
	case apierrors.IsForbidden(err) && a.Pod != "": // then it isn't told
	case apierrors.IsForbidden(err):
		// That is an answer, too: the Job isn't to wait for one, but to move in its time.
		answer = "the Job has no Pods, and why can't be read: " + err.Error()
	case err != nil:
		return result{}, &workerError{w.Name(), err}
	}
	now := r.clock.Now()
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.asked, m.askedAt, m.answer = about, now, answer })
	return changed, nil
}

// saidSince is from when on an event about a mirror counts, by the worker's clock: before, Pods of
// it could be created, if any ran.
func (t *turn) saidSince(w worker, m *batchv1.Job) time.Time {
	since := t.known.mirrors[w.Name()].waitingSince
	if since.IsZero() || m.Status.Succeeded+m.Status.Failed == 0 {
		return time.Time{}
	}
	return since.Add(-w.View().ClockAhead - waitingSlack)
}

// waitingSlack is by how much an event may be older than what shows of its cause.
const waitingSlack = 10 * time.Second

func latestMessage(events []corev1.Event, since time.Time) string {
	var latest *corev1.Event
	for i := range events {
		if events[i].LastTimestamp.Time.Before(since) {
			continue
		}
		if latest == nil || latest.LastTimestamp.Before(&events[i].LastTimestamp) {
			latest = &events[i]
		}
	}
	if latest == nil {
		return ""
	}
	return text.Clean(latest.Message, text.MaxMessage)
}
