package dispatch

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const (
	// BusyFrom is the number of writes in flight from which the hub counts as busy: see IsBusy. By
	// Little's law that number is the rate of writes times the time that each takes, so it grows
	// with both; a hub that is far away is busy only if many Jobs change.
	BusyFrom = 8
	// maxProgressFloor bounds how long progress waits for a busy hub.
	maxProgressFloor = 10 * time.Second
)

// IsBusy reports whether the hub counts as busy with some writes in flight.
func IsBusy(writesInFlight int) bool { return writesInFlight >= BusyFrom }

// planStatus writes a status that is due, with other changes of what is kept. A status that can
// wait is written with the next change. awaited: another step needs this status on the hub, so it
// doesn't wait.
func (s *Snapshot) planStatus(next mirror.Next, changes hubstate.Changes, awaited bool) Plan {
	if wait := s.statusWait(next); wait > 0 && !awaited {
		return Plan{After: wait, Behind: true, HubBusy: IsBusy(s.WritesInFlight)}
	}
	return Plan{Actions: []Action{s.newWriteStatus(&next.Status, changes)}}
}

// statusWait is how long a status can wait for the next change. Progress waits for the floor since
// the last write. The announcement of the end waits for the floor since the mirror changed, and so
// does the start if that floor is longer than usual: if the hub is busy, or the Job has several
// mirrors. Anything else is written at once.
func (s *Snapshot) statusWait(next mirror.Next) time.Duration {
	floor := s.progressFloor()
	switch {
	case next.Change == mirror.Progress:
		return s.LastStatusWrite.Add(floor).Sub(s.Now)
	case floor > s.Timing.ProgressFloor && s.onlyStarts(&next.Status), s.onlyAnnouncesEnd(&next.Status):
		return s.UnshownSince.Add(floor).Sub(s.Now)
	default:
		return 0
	}
}

// progressFloor is the least time between two writes of a Job's progress: longer by as much as the
// hub has writes in flight. A Job with several mirrors has as many writes as one with one.
func (s *Snapshot) progressFloor() time.Duration {
	if s.Timing.ProgressFloor == 0 {
		return 0 // each change is wanted
	}
	busy := max(s.WritesInFlight-BusyFrom, 0)
	mirrors := max(len(s.AssignedWorkers()), 1)
	return min(s.Timing.ProgressFloor*time.Duration(mirrors+busy), max(maxProgressFloor, s.Timing.ProgressFloor))
}

// onlyStarts reports whether all that is new, besides progress, is that the Job has started, and
// perhaps that it will end.
func (s *Snapshot) onlyStarts(next *batchv1.JobStatus) bool {
	isOther := func(c batchv1.JobCondition) bool { return !hubstate.IsOurs(c.Type) && !mirror.AnnouncesEnd(c) }
	return s.Job.Status.StartTime == nil && !slices.ContainsFunc(next.Conditions, isOther)
}

// onlyAnnouncesEnd reports whether all that is new, besides progress, is that the Job will end.
// When its Pods have ended already, the end itself is some milliseconds away.
func (s *Snapshot) onlyAnnouncesEnd(next *batchv1.JobStatus) bool {
	shown := s.Job.Status
	added := slices.DeleteFunc(slices.Clone(next.Conditions), func(n batchv1.JobCondition) bool {
		return slices.ContainsFunc(shown.Conditions, func(c batchv1.JobCondition) bool { return c.Type == n.Type })
	})
	isMore := func(c batchv1.JobCondition) bool { return !mirror.AnnouncesEnd(c) }
	return len(added) > 0 && !slices.ContainsFunc(added, isMore) && shown.StartTime.Equal(next.StartTime)
}
