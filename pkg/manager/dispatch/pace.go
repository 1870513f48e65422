package dispatch

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// While the hub is busy, the news that can wait do: a hundred times as long as its writes have to,
// from where it's noticeable.
const (
	busyFrom         = 10 * time.Millisecond
	busyTimes        = 100
	maxProgressFloor = 10 * time.Second
)

// lookAgain is when to look whether the hub is still busy.
const lookAgain = time.Second

// writeStatus writes a status that is due; one that can wait for the next change does, to go with
// it in one write. Nothing waits that is awaited, to go on.
func (s *Snapshot) writeStatus(next mirror.Next, awaited bool) Plan {
	if wait := s.statusWait(next); wait > 0 && !awaited {
		return Plan{After: min(wait, max(s.Timing.ProgressFloor, lookAgain)), Behind: true}
	}
	return Plan{Actions: []Action{WriteStatus{Patch: mirror.StatusPatch(s.Job, &next.Status)}}}
}

// statusWait is how long a status can wait for the next change. What changes how the Job stands
// isn't kept waiting, but that it runs is, by a hub that is busy.
func (s *Snapshot) statusWait(next mirror.Next) time.Duration {
	floor := s.progressFloor()
	switch {
	case next.Change == mirror.Progress:
		return s.LastStatusWrite.Add(floor).Sub(s.Now)
	case s.onlyTellsStart(&next.Status):
		if floor == s.Timing.ProgressFloor {
			return 0
		}
		return s.MirrorChanged.Add(floor).Sub(s.Now)
	case s.onlyAnnouncesEnd(&next.Status):
		return s.MirrorChanged.Add(floor).Sub(s.Now)
	default:
		return 0
	}
}

// progressFloor is the least time between two writes of a Job's progress.
func (s *Snapshot) progressFloor() time.Duration {
	if s.Timing.ProgressFloor == 0 {
		return 0 // each change is wanted
	}
	return max(s.Timing.ProgressFloor, min(busyTimes*(s.HubBusy-busyFrom), maxProgressFloor))
}

// onlyTellsStart: all that is new, besides progress, is that the Job has started.
func (s *Snapshot) onlyTellsStart(next *batchv1.JobStatus) bool {
	return s.Job.Status.StartTime == nil && len(next.Conditions) == 0
}

// onlyAnnouncesEnd: all that is new, besides progress, is that the Job will end. When its Pods have
// ended already, the end itself is some milliseconds away.
func (s *Snapshot) onlyAnnouncesEnd(next *batchv1.JobStatus) bool {
	shown := s.Job.Status
	news := slices.DeleteFunc(slices.Clone(next.Conditions), func(n batchv1.JobCondition) bool {
		return slices.ContainsFunc(shown.Conditions, func(c batchv1.JobCondition) bool { return c.Type == n.Type })
	})
	isMore := func(c batchv1.JobCondition) bool {
		return c.Type != batchv1.JobSuccessCriteriaMet && c.Type != batchv1.JobFailureTarget
	}
	return len(news) > 0 && !slices.ContainsFunc(news, isMore) && shown.StartTime.Equal(next.StartTime)
}
