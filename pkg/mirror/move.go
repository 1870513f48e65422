package mirror

import (
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Move is the step of a Job from one worker to another.
type Move struct {
	// From is the worker that the Job leaves.
	From string
	// At is when the Job is moved, and RanUntil when it's known to have run last.
	At, RanUntil time.Time
	// FreshStart makes the Job start from zero.
	FreshStart bool
}

// PlacementAnnotations returns what a placement changes in the annotations of a hub Job; nil
// removes an annotation. The manager writes them in the one write that changes the placement:
// everything that follows, also in another process, is derived from there.
//
// The move is nil for a Job's first placement, and for its return: the Job is placed again on the
// worker that it was moved away from, because its mirror there has ended or is about to. A return
// undoes the move. Afterwards the deadline counts from the Job's start, as if the Job had never
// moved.
//
//	                  first placement  move                  return
//	cluster           set              set                   set
//	placed-for        to the Job's cluster selector, or removed
//	moved-from        -                set                   removed
//	moved-at          -                set                   removed
//	moved-with        -                set                   removed
//	deadline-spent    -                set, removed if zero  removed
//	fresh-start       -                set if asked for      removed if the undone move set it
//
// A Job that started from zero once does so at each further move, because the progress that the hub
// shows may be that of an earlier attempt. So the value of fresh-start is the moved-at of the move
// that set it.
func PlacementAnnotations(hub *batchv1.Job, worker string, move *Move) map[string]any {
	changes := map[string]any{
		v1alpha1.AnnotationCluster:       worker,
		v1alpha1.AnnotationPlacedFor:     nil,
		v1alpha1.AnnotationMovedFrom:     nil,
		v1alpha1.AnnotationMovedAt:       nil,
		v1alpha1.AnnotationMovedWith:     nil,
		v1alpha1.AnnotationDeadlineSpent: nil,
	}
	if selector := hub.Annotations[v1alpha1.AnnotationClusterSelector]; selector != "" {
		changes[v1alpha1.AnnotationPlacedFor] = selector
	}
	switch {
	case move != nil:
		maps.Copy(changes, move.annotations(hub))
	case hub.Annotations[v1alpha1.AnnotationFreshStart] == hub.Annotations[v1alpha1.AnnotationMovedAt]:
		changes[v1alpha1.AnnotationFreshStart] = nil
	}
	maps.DeleteFunc(changes, func(key string, value any) bool {
		_, has := hub.Annotations[key]
		return value == nil && !has
	})
	return changes
}

func (m Move) annotations(hub *batchv1.Job) map[string]any {
	at := m.At.UTC().Format(time.RFC3339)
	set := map[string]any{
		v1alpha1.AnnotationMovedFrom: m.From,
		v1alpha1.AnnotationMovedAt:   at,
		v1alpha1.AnnotationMovedWith: movedWith(hub),
	}
	if m.FreshStart && !FreshStart(hub) {
		set[v1alpha1.AnnotationFreshStart] = at
	}
	if spent := wholeSeconds(DeadlineSpent(hub, m.RanUntil)); spent != "" {
		set[v1alpha1.AnnotationDeadlineSpent] = spent
	}
	return set
}

// FreshStart reports whether a mirror starts from zero; of a hub Job, whether the next mirror does.
func FreshStart(job *batchv1.Job) bool {
	_, ok := job.Annotations[v1alpha1.AnnotationFreshStart]
	return ok
}

// DeadlineSpent returns how much of activeDeadlineSeconds a Job has used until some time: the time
// since its start, without that between a loss and the move that followed. A Job that has been
// suspended has its whole deadline again, as the Job API says.
func DeadlineSpent(hub *batchv1.Job, until time.Time) time.Duration {
	if hub.Spec.ActiveDeadlineSeconds == nil || hub.Status.StartTime == nil || Suspended(hub) {
		return 0
	}
	from, before := hub.Status.StartTime.Time, int64(0)
	if moved, err := time.Parse(time.RFC3339, hub.Annotations[v1alpha1.AnnotationMovedAt]); err == nil && !moved.Before(from) {
		from, before = moved, secondsSpent(hub)
	}
	return time.Duration(before)*time.Second + max(until.Sub(from), 0)
}

// wholeSeconds is the text of AnnotationDeadlineSpent, or "" for less than a second.
func wholeSeconds(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// secondsSpent reads AnnotationDeadlineSpent.
func secondsSpent(job *batchv1.Job) int64 {
	seconds, err := strconv.ParseInt(job.Annotations[v1alpha1.AnnotationDeadlineSpent], 10, 64)
	if err != nil {
		return 0
	}
	return max(seconds, 0)
}

// Stopped reports whether a suspended mirror has stopped: its Job controller has observed the
// suspension, none of its Pods is left, and all that ended are counted. A mirror that no controller
// has written to counts as stopped if it has always been suspended: else a controller that is late
// may have seen it before, and still start it.
func Stopped(m *batchv1.Job) bool {
	s := &m.Status
	if !Suspended(m) {
		return false
	}
	if blank(s) && m.Generation <= 1 {
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

// SuspendExactly is SuspendPatch with the mirror's resourceVersion as precondition, too.
func SuspendExactly(m *batchv1.Job) []byte {
	return patchBytes(m, map[string]any{"spec": map[string]any{"suspend": true}}, true)
}

// ConfirmPatch is the merge patch that removes the mark of the fence from a mirror, with its UID as
// precondition.
func ConfirmPatch(m *batchv1.Job) []byte {
	return patchBytes(m, map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationFenced: nil}}}, false)
}
