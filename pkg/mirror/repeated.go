package mirror

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Repeated are the completions of a stale mirror that its Job makes again elsewhere.
type Repeated struct {
	Completions int
	// Indexes are the indexes that complete twice; empty for Jobs without, or if there are too
	// many.
	Indexes string
}

// RepeatedBy compares the stale mirror of a moved Job with what the hub knew of the Job's progress
// when it moved the Job.
//
// That knowledge is kept with the hub Job (hubstate.MovedWith), because nothing else keeps it. The
// status of the hub Job grows with the next mirror: by the time that a lost worker is back, an
// index that completed in both workers looks like one that the hub knew of before. And a worker
// that is lost can't be asked.
func RepeatedBy(hub, stale *batchv1.Job) Repeated {
	with, moved := MovedWith(hub)
	if !moved {
		return Repeated{}
	}
	knew, has := readIndexes(&with, intervals.NoLimit), readIndexes(&stale.Status, intervals.NoLimit)
	switch {
	case knew.completedFault != "":
		return Repeated{}
	case !indexed(hub) || knew.completed.Len() != int(with.Succeeded):
		return Repeated{Completions: max(int(stale.Status.Succeeded)-int(with.Succeeded), 0)}
	default:
		// Below the completions, because no rule has checked what the stale mirror says.
		more := has.completed.Below(completions(hub)).Minus(knew.completed)
		return Repeated{Completions: more.Len(), Indexes: more.String()}
	}
}

// Moved reports whether a hub Job was moved away from a worker.
func Moved(hub *batchv1.Job) bool { return hubstate.Get(hub, hubstate.MovedWith) != "" }

// Ended counts Pods that have ended.
type Ended struct{ Succeeded, Failed int32 }

// EndedBefore are the Pods of a moved Job that its mirror counts and that ended in other workers:
// those that it was seeded with.
func EndedBefore(hub, mirror *batchv1.Job) Ended {
	with, moved := MovedWith(hub)
	if !moved {
		return Ended{}
	}
	return seededWith(&with, hub, mirror)
}

// SeededNow are the Pods that a mirror counts and that ended before it was made, if the hub Job has
// made no progress since: those that it's seeded with, in another worker or in the same one.
func SeededNow(hub, mirror *batchv1.Job) Ended { return seededWith(&hub.Status, hub, mirror) }

func seededWith(status *batchv1.JobStatus, hub, mirror *batchv1.Job) Ended {
	if FreshStart(mirror) || workQueue(hub) {
		return Ended{}
	}
	return Ended{status.Succeeded, status.Failed}
}

// MovedWith is the progress that the hub knew of when it last moved the Job. It is false if the Job
// never moved, or someone edited what is kept. Indexes are left out if they are too many.
func MovedWith(hub *batchv1.Job) (with batchv1.JobStatus, is bool) {
	text := hubstate.Get(hub, hubstate.MovedWith)
	return with, text != "" && len(text) <= 2*maxMovedIndexes && json.Unmarshal([]byte(text), &with) == nil
}

// maxMovedIndexes bounds the text of the indexes that a hub Job keeps of its last move, in bytes.
// Beyond it, repeated completions are counted, not named.
const maxMovedIndexes = 2048

// movedWith is the text of hubstate.MovedWith: the part of the hub Job's status that counts what
// has ended.
func movedWith(hub *batchv1.Job) string {
	with := batchv1.JobStatus{Succeeded: hub.Status.Succeeded, Failed: hub.Status.Failed}
	if len(hub.Status.CompletedIndexes) <= maxMovedIndexes {
		with.CompletedIndexes = hub.Status.CompletedIndexes
	}
	return string(mustMarshal(with))
}
