package mirror

import (
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
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

// PlacementChanges returns what a placement changes of what the manager keeps of a hub Job. The
// manager writes it in the one write that changes the placement: everything that follows, also in
// another process, is derived from there.
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
//	vanished          -                removed               removed
//
// A Job that started from zero once does so at each further move, because the progress that the hub
// shows may be that of an earlier attempt. So the value of fresh-start is the moved-at of the move
// that set it.
func PlacementChanges(hub *batchv1.Job, worker string, move *Move) hubstate.Changes {
	changes := hubstate.Changes{
		hubstate.Cluster:       worker,
		hubstate.PlacedFor:     hub.Annotations[v1alpha1.AnnotationClusterSelector],
		hubstate.MovedFrom:     "",
		hubstate.MovedAt:       "",
		hubstate.MovedWith:     "",
		hubstate.DeadlineSpent: "",
		hubstate.Vanished:      "",
	}
	switch {
	case move != nil:
		maps.Copy(changes, move.changes(hub))
	case hubstate.Get(hub, hubstate.FreshStart) == hubstate.Get(hub, hubstate.MovedAt):
		changes[hubstate.FreshStart] = ""
	}
	maps.DeleteFunc(changes, func(key hubstate.Key, value string) bool {
		return value == "" && hubstate.Get(hub, key) == ""
	})
	return changes
}

func (m Move) changes(hub *batchv1.Job) hubstate.Changes {
	at := m.At.UTC().Format(time.RFC3339)
	set := hubstate.Changes{
		hubstate.MovedFrom: m.From,
		hubstate.MovedAt:   at,
		hubstate.MovedWith: movedWith(hub),
	}
	if m.FreshStart && !StartsFresh(hub) {
		set[hubstate.FreshStart] = at
	}
	if spent := wholeSeconds(DeadlineSpent(hub, m.RanUntil)); spent != "" {
		set[hubstate.DeadlineSpent] = spent
	}
	return set
}

// StartsFresh reports whether the next mirror of a hub Job starts from zero.
func StartsFresh(hub *batchv1.Job) bool { return hubstate.Get(hub, hubstate.FreshStart) != "" }

// FreshStart reports whether a mirror started from zero.
func FreshStart(mirror *batchv1.Job) bool {
	_, ok := mirror.Annotations[v1alpha1.AnnotationFreshStart]
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
	if moved, err := time.Parse(time.RFC3339, hubstate.Get(hub, hubstate.MovedAt)); err == nil && !moved.Before(from) {
		from, before = moved, seconds(hubstate.Get(hub, hubstate.DeadlineSpent))
	}
	return time.Duration(before)*time.Second + max(until.Sub(from), 0)
}

// wholeSeconds is the text of a deadline's time that is spent, or "" for less than a second.
func wholeSeconds(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// seconds reads the text that wholeSeconds makes.
func seconds(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
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
