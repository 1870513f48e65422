package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
	"github.com/jobferry/jobferry/pkg/util/quantities"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// createMirror creates a mirror. A mirror of the name that is there already is ours if the answer
// to an earlier create was lost.
func (r *Reconciler) createMirror(ctx context.Context, t *turn, w worker, a dispatch.CreateMirror) (result, error) {
	if slices.Contains(t.known.holders, w.Name()) {
		return result{}, errJustGone
	}
	began := r.clock.Now()
	whole, err := r.wholeWanted(ctx, t, w.Name())
	if err != nil {
		return result{}, err
	}
	mirror.SelectPods(t.Job, a.Mirror, mirror.NewID(r.options.Origin, t.Key))
	created, err := r.createFrom(ctx, t, w, a.Mirror, whole)
	if apierrors.IsAlreadyExists(err) {
		return r.takeExisting(ctx, t, w)
	}
	if err != nil {
		t.noteFailedCreate(w, err)
		return result{}, err
	}
	now, uid := r.clock.Now(), created.UID
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) {
		m.last, m.created, m.creations = nil, uid, m.creations.next(t.Snapshot, now)
		m.isReplaced, m.isConfirmed, m.neverHad = false, false, false
	})
	if marks := missingMarks(a.Mirror, created); len(marks) > 0 {
		return result{}, r.takeBack(ctx, t, w, created, removesText(marks))
	}
	if !mirror.IsFor(w.View().Spec.JobController, created) {
		return result{}, r.takeBack(ctx, t, w, created, givesAwayText)
	}
	if endsOtherwise(a.Mirror, created) {
		if err := r.deleteIncomplete(ctx, t, w, created.UID); err != nil {
			return result{}, err
		}
		return result{}, &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused,
			text: "changes spec.completions or spec.completionMode of Jobs, so that they would end otherwise: look for a policy there"}
	}
	if err := r.wroteMirror(t.record, w, created); err != nil {
		return result{}, err
	}
	r.traced(t, spans.Span{Name: spans.Mirroring, Worker: w.Name(), Start: began})
	if t.Job.Status.StartTime == nil {
		mirrorLatency.Observe(t.known.age(t.Job, now).Seconds())
	}
	done := changed
	done.add(r.tellUncarried(ctx, t, w))
	return done, nil
}

// noteFailedCreate takes note of whether the worker has never had the Job, and refuses it. Where
// the hub may not create Jobs it may not read them, either: nothing would answer whether one is
// left.
func (t *turn) noteFailedCreate(w worker, err error) {
	refusal := (*refusalError)(nil)
	had := func(id usage.ID) bool { return id.Worker == w.Name() }
	isRefusal := errors.As(err, &refusal)
	outright := isRefusal && refusal.outright && !slices.ContainsFunc(t.Accounted.IDs(), had)
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) {
		m.unanswered = m.unanswered || !isRefusal
		m.neverHad = outright && m.created == "" && m.takenBack == "" && !m.unanswered
	})
}

// endsOtherwise reports whether a worker has changed when a mirror is complete: that stays so.
func endsOtherwise(sent, answer *batchv1.Job) bool {
	mode := func(job *batchv1.Job) batchv1.CompletionMode {
		return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	}
	return !ptr.Equal(sent.Spec.Completions, answer.Spec.Completions) || mode(sent) != mode(answer)
}

// createFrom creates a mirror of the hub Job as its API server sent it; nil: that has no recent
// fields.
func (r *Reconciler) createFrom(ctx context.Context, t *turn, w worker, m *batchv1.Job, whole *mirror.Whole) (*batchv1.Job, error) {
	if whole != nil && len(whole.Recent) > 0 {
		return r.createWhole(ctx, t, w, m, whole)
	}
	answer, err := r.create(ctx, w, m)
	created, _ := answer.(*batchv1.Job)
	return created, err
}

// create sends a mirror, and returns the worker's answer. It makes the namespace that the worker
// lacks.
func (r *Reconciler) create(ctx context.Context, w worker, sent client.Object, options ...client.CreateOption) (client.Object, error) {
	answer := deepCopy(sent)
	err := w.Client().Create(ctx, answer, options...)
	if apierrors.IsNotFound(err) && createsNamespaces(w) {
		if err = r.createNamespace(ctx, w, sent.GetNamespace()); err == nil {
			answer = deepCopy(sent)
			err = w.Client().Create(ctx, answer, options...)
		}
	}
	switch {
	case err == nil:
		return answer, nil
	case apierrors.IsAlreadyExists(err):
		return nil, err
	default:
		return nil, refusalOf(w, sent.GetNamespace(), err)
	}
}

func deepCopy(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of the original
}

// createWhole creates the mirror of a Job with recent fields, in a worker that keeps them. A dry
// run shows that, once for each field and worker. The create itself is strict: an API server of
// another release behind the same address refuses what it doesn't know. One that has a field
// switched off, while another one had it switched on, shows in the answer.
func (r *Reconciler) createWhole(ctx context.Context, t *turn, w worker, m *batchv1.Job, whole *mirror.Whole) (*batchv1.Job, error) {
	tooMany := func(n int) error {
		return &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused, text: fmt.Sprintf(
			"gets no Job of %d values that has the field %s, but one of %d at most: leave the field out, or make the Job smaller",
			n, whole.Recent.Paths()[0], maxWholeValues)}
	}
	if n := whole.Values(); n > maxWholeValues { // before it's copied
		return nil, tooMany(n)
	}
	object, err := whole.Mirror(m)
	if err != nil {
		return nil, err
	}
	sent := &unstructured.Unstructured{Object: object}
	if n := mirror.Values(sent.Object); n > maxWholeValues {
		return nil, tooMany(n)
	}
	dropped, all := r.fieldSupport.ask(w, recentOf(sent))
	if len(dropped) == 0 && !all {
		_, dropped, err = r.sendWhole(ctx, w, sent, client.DryRunAll, client.FieldValidation(metav1.FieldValidationIgnore))
		if err != nil {
			return nil, err
		}
	}
	if len(dropped) > 0 {
		return nil, dropsFields(w, dropped)
	}
	answer, dropped, err := r.sendWhole(ctx, w, sent, client.FieldValidation(metav1.FieldValidationStrict))
	switch {
	case err != nil:
		return nil, err
	case len(dropped) > 0:
		if err := r.deleteIncomplete(ctx, t, w, answer.GetUID()); err != nil {
			return nil, err
		}
		return nil, dropsFields(w, dropped)
	}
	return r.typed(w, answer)
}

// maxWholeValues bounds what is sent as JSON: a worker's answer in JSON, which has the names of all
// fields twice, counts as broken from some 30,000 values on, and no user is to have a worker cut
// off.
const maxWholeValues = 6000

// sendWhole creates a mirror, and remembers which of its recent fields the answer has.
func (r *Reconciler) sendWhole(
	ctx context.Context, w worker, sent *unstructured.Unstructured, options ...client.CreateOption,
) (answer client.Object, dropped []string, err error) {
	if answer, err = r.create(ctx, w, sent, options...); err != nil {
		return nil, nil, err
	}
	dropped = recentfields.Lost(specOf(sent), specOf(answer))
	r.fieldSupport.learn(w, recentOf(sent), dropped)
	return answer, dropped, nil
}

// deleteIncomplete deletes a mirror that has lost a field, before it runs for long.
func (r *Reconciler) deleteIncomplete(ctx context.Context, t *turn, w worker, uid types.UID) error {
	err := w.Client().Delete(ctx, named(t.Job), client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return &workerError{w.Name(), fmt.Errorf("it dropped a field of the Job, which can't be deleted there: %w", err)}
	}
	now := r.clock.Now()
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.write = ownWrite{deleted: uid, at: now} })
	return nil
}

func dropsFields(w worker, paths []string) error {
	version := text.Clean(w.View().Version, text.MaxMessage)
	return &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused, text: fmt.Sprintf(
		"drops %s: its API server (%s) doesn't have that, or has it switched off by a feature gate", strings.Join(paths, ", "), version)}
}

var errCostly = errors.New("it has a quantity that no API server sends")

// typed makes a Job of an answer that was read without a type: the client looks for costly
// quantities by the kind that the worker says it is.
func (r *Reconciler) typed(w worker, answer client.Object) (*batchv1.Job, error) {
	job, content := &batchv1.Job{}, contentOf(answer)
	text, err := json.Marshal(content)
	switch {
	case err != nil:
	case quantities.HasCostlyJSON(text, reflect.TypeFor[batchv1.Job]()):
		err = errCostly
	default:
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, job)
	}
	if err != nil {
		return nil, &workerError{w.Name(), fmt.Errorf("read the Job in its answer: %w", err)}
	}
	return job, nil
}

func contentOf(object client.Object) map[string]any {
	if untyped, ok := object.(*unstructured.Unstructured); ok {
		return untyped.Object
	}
	return nil
}

func specOf(object client.Object) map[string]any {
	spec, _ := contentOf(object)["spec"].(map[string]any)
	return spec
}

// recentOf are the recent fields of a mirror that is sent.
func recentOf(sent *unstructured.Unstructured) recentfields.Fingerprints {
	spec, err := json.Marshal(specOf(sent))
	if err != nil {
		panic(fmt.Sprintf("marshal a spec: %v", err)) // can't be: it was read from JSON
	}
	return recentfields.Of(spec)
}

// patchRecentFields changes recent fields of a mirror in place.
func (r *Reconciler) patchRecentFields(ctx context.Context, t *turn, w worker, a dispatch.PatchRecentFields) (result, error) {
	whole, err := t.liveWhole(ctx)
	if err != nil {
		return result{}, err
	}
	if whole == nil || !t.isPlacedAlike(whole.Job, w.Name()) {
		return void, nil // the cache was behind: its next event enqueues the Job
	}
	answer := named(a.Mirror)
	err = w.Client().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, a.Patch.Bytes(whole, a.Mirror)))
	now := r.clock.Now()
	switch {
	case isRefusal(err):
		notes := []mirror.Note{{
			Field: strings.Join(a.Patch.Fields, ", "), Message: "refused: " + text.Clean(err.Error(), text.MaxMessage)}}
		t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.unmet = m.unmet.Again(a.Patch.Diff(), notes, now) })
		return changed, nil
	case err != nil:
		return result{}, &workerError{w.Name(), err}
	}
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.unmet = dispatch.Unmet{} })
	t.countPatch(w, now)
	return changed, r.wroteMirror(t.record, w, answer)
}
