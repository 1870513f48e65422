package mirror

import (
	"encoding/json"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/intervals"
)

// Move is the step of a Job from one worker to another. It's written on the hub Job as annotations,
// in the one write that changes the placement: what comes after, also in another process, is
// derived from there.
type Move struct {
	// From is the worker that the Job leaves.
	From string
	// At is when it's moved, and RanUntil when it's known to have run last.
	At, RanUntil time.Time
	// FreshStart: it starts from zero.
	FreshStart bool
}

// Annotations are what the move changes on the hub Job; nil removes an annotation. A Job that
// started from zero once does so at each further move: what the hub shows of its progress may be
// that of an earlier attempt.
func (m Move) Annotations(hub *batchv1.Job) map[string]any {
	set := map[string]any{
		v1alpha1.AnnotationMovedFrom:     m.From,
		v1alpha1.AnnotationMovedAt:       m.At.UTC().Format(time.RFC3339),
		v1alpha1.AnnotationMovedWith:     newMovedWith(hub),
		v1alpha1.AnnotationDeadlineSpent: nil,
	}
	if m.FreshStart {
		set[v1alpha1.AnnotationFreshStart] = "true"
	}
	if s := int64(DeadlineSpent(hub, m.RanUntil) / time.Second); s > 0 {
		set[v1alpha1.AnnotationDeadlineSpent] = strconv.FormatInt(s, 10)
	}
	return set
}

// DeadlineSpent is how much of activeDeadlineSeconds a Job has used until some time: the time since
// its start, without that between a loss and the move that followed. A Job that has been suspended
// has its whole deadline again, as the Job API says.
func DeadlineSpent(hub *batchv1.Job, until time.Time) time.Duration {
	if hub.Spec.ActiveDeadlineSeconds == nil || hub.Status.StartTime == nil || Suspended(hub) {
		return 0
	}
	from, before := hub.Status.StartTime.Time, time.Duration(0)
	if moved, err := time.Parse(time.RFC3339, hub.Annotations[v1alpha1.AnnotationMovedAt]); err == nil && !moved.Before(from) {
		from = moved
		seconds, _ := strconv.ParseInt(hub.Annotations[v1alpha1.AnnotationDeadlineSpent], 10, 64) // none: nothing
		before = time.Duration(max(seconds, 0)) * time.Second
	}
	return before + max(until.Sub(from), 0)
}

// FreshStart says whether mirrors of a hub Job start from zero, because it has been moved so.
func FreshStart(hub *batchv1.Job) bool { return freshStart(hub) }

// maxMovedIndexes bounds the text of the indexes that a hub Job keeps of its last move, in bytes.
// Beyond it, repeated completions are counted, not named.
const maxMovedIndexes = 2048

// movedWith is what the hub knew of a Job's progress when it moved it.
type movedWith struct {
	Succeeded int32 `json:"succeeded"`
	// CompletedIndexes are those of Indexed Jobs; nil: too many to keep.
	CompletedIndexes *string `json:"completedIndexes,omitempty"`
}

func newMovedWith(hub *batchv1.Job) string {
	w := movedWith{Succeeded: hub.Status.Succeeded}
	if indexed(hub) && len(hub.Status.CompletedIndexes) <= maxMovedIndexes {
		w.CompletedIndexes = &hub.Status.CompletedIndexes
	}
	return string(mustMarshal(w))
}

// Repeated are the completions of a copy that a Job was moved away from, which the hub didn't know
// of then: they're made again elsewhere.
type Repeated struct {
	Completions int32
	// Indexes are the indexes completed twice; empty for Jobs without, or if there are too many.
	Indexes string
}

// Moved says whether a hub Job was moved away from a worker, with what it had then.
func Moved(hub *batchv1.Job) bool { return hub.Annotations[v1alpha1.AnnotationMovedWith] != "" }

// RepeatedBy compares a former copy of a moved Job with what the hub knew when it moved it.
func RepeatedBy(hub, former *batchv1.Job) Repeated {
	var with movedWith
	if json.Unmarshal([]byte(hub.Annotations[v1alpha1.AnnotationMovedWith]), &with) != nil {
		return Repeated{} // not moved, or by hand
	}
	if !indexed(hub) || with.CompletedIndexes == nil {
		return Repeated{Completions: max(former.Status.Succeeded-with.Succeeded, 0)}
	}
	knew, err := intervals.ParseStrict(*with.CompletedIndexes, intervals.NoLimit)
	has := readIndexes(&former.Status, intervals.NoLimit)
	if err != nil || has.completedFault != "" {
		return Repeated{}
	}
	more := has.completed.Minus(knew)
	return Repeated{Completions: int32(more.Len()), Indexes: more.String()} //nolint:gosec // bounded by the completions
}

// Stopped says whether a suspended mirror has come to rest: its Job controller has seen the
// suspension, none of its Pods is left, and all that ended are counted. A mirror that no controller
// has touched has nothing to bring to rest.
func Stopped(m *batchv1.Job) bool {
	s := &m.Status
	if !Suspended(m) {
		return false
	}
	if blank(s) {
		return true
	}
	counted := s.UncountedTerminatedPods == nil ||
		len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) == 0
	return isTrue(s, batchv1.JobSuspended) && s.Active == 0 && deref(s.Ready) == 0 && deref(s.Terminating) == 0 && counted
}

// SuspendPatch is the merge patch that suspends a mirror, with its UID as precondition.
func SuspendPatch(m *batchv1.Job) []byte {
	return patchBytes(m, map[string]any{"spec": map[string]any{"suspend": true}}, false)
}

// ConfirmPatch is the merge patch that takes the mark of the fence off a mirror, with its UID as
// precondition.
func ConfirmPatch(m *batchv1.Job) []byte {
	return patchBytes(m, map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationFenced: nil}}}, false)
}
