package dispatch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Part is what the snapshot of a shard has beside that of a whole Job.
type Part struct {
	shards.Shard
	// HubJob is the whole Job, as the hub has it.
	HubJob *batchv1.Job
}

// isPartSettled reports whether a shard without a mirror has nothing to run.
func (s *Snapshot) isPartSettled(w *Worker) bool {
	return s.Part != nil && w.Registered && w.Synced && w.Mirror == nil && !s.Part.Stopping &&
		(shards.Ending(s.Part.HubJob) != nil || shards.Remaining(s.Part.HubJob, s.Part.Shard).Len() == 0)
}

// isPartStopping reports whether a shard is to leave its worker.
func (s *Snapshot) isPartStopping(w *Worker) bool {
	return s.Part != nil && s.Part.Stopping && w.Synced && w.Removal != v1alpha1.RemovalOrphan
}

// isPartUnseen reports whether a shard is to leave a worker that may have a mirror without marks:
// once it has left, nobody looks for that.
func (s *Snapshot) isPartUnseen(w *Worker) bool {
	return s.Part != nil && w.Registered && w.Synced && w.Unseen && w.Orphan == nil && w.Removal == "" && (s.Part.Stopping || w.Unwanted != "")
}

// planPartStopping stops the mirror of a shard, and deletes it when it has stopped: the hub shows
// its progress by then. The shard is removed when the mirror is gone, or its worker takes too long
// for a user who doesn't want to wait for it.
func planPartStopping(s *Snapshot, w *Worker) Plan {
	m := w.Mirror
	if m == nil || s.isGivenUp(w) {
		return w.leave("has stopped its shard")
	}
	var plan Plan
	switch {
	case m.DeletionTimestamp != nil:
	case mirror.Finished(m) || mirror.Stopped(m):
		plan.Actions = []Action{s.part(w)}
	case mirror.Suspended(m):
		plan.Reports = append(plan.Reports, note(v1alpha1.EventMoving, "Waiting for the Job's Pods in worker "+w.Name+" to end"))
	default:
		if plan.After = w.Patches.backoff(freePatches, s.Now); plan.After == 0 {
			plan.Actions = []Action{SuspendMirror{At: At{w.Name, m}}}
		}
	}
	plan.awaitRelease(s, w)
	return plan
}

// part deletes the mirror of a shard.
func (s *Snapshot) part(w *Worker) DeleteMirror {
	d := deletion(w, w.Mirror)
	d.VerifyPart = true
	return d
}

// isOutdated reports whether a mirror isn't the one that is wanted: it was created for another part
// of the Job, or before the completions of a divided Job were changed.
func (s *Snapshot) isOutdated(w *Worker) bool {
	switch m := w.Mirror; {
	case m == nil || m.DeletionTimestamp != nil:
		return false
	case s.Part == nil:
		return isPart(m)
	default:
		return s.Part.IsOutdated(s.Part.HubJob, m)
	}
}

// planOutdated deletes a mirror that isn't wanted any more; one of a shard that runs is stopped
// first, with its shard.
func planOutdated(s *Snapshot, w *Worker) Plan {
	if s.Part != nil && isRunning(w.Mirror) {
		return Plan{Actions: []Action{restart{At{w.Name, w.Mirror}}}, Reports: []Report{note(v1alpha1.EventMirrorRecreated,
			"Worker "+w.Name+" runs another part of the Job than it is to; its Pods are stopped, and it continues with what is left")}}
	}
	if s.Part == nil {
		return Plan{Actions: w.deletions(), Reports: []Report{warn(v1alpha1.EventMirrorRecreated,
			"Worker "+w.Name+" has a mirror of a part of the Job; it is created there again")}}
	}
	return Plan{Actions: []Action{s.part(w)}}
}

// restart asks for a shard's mirror to be stopped and replaced: see Divide.Restart.
type restart struct{ At }

// reopenPart deletes a mirror that has ended before its shard has, such as with the whole Job,
// whose end the hub has forgotten: the next one continues with what is left.
func reopenPart(s *Snapshot, w *Worker) Plan {
	left := shards.Remaining(s.Part.HubJob, s.Part.Shard).Indexes
	if failed := mirror.TrueCondition(&w.Mirror.Status, batchv1.JobFailed); failed != nil && failed.Reason != batchv1.JobReasonFailedIndexes {
		return Plan{} // the whole Job ends by that
	}
	if shards.Ending(s.Part.HubJob) != nil || len(left) == 0 || !mirror.Finished(w.Mirror) || len(left.Intersect(shards.SettledIn(w.Mirror))) > 0 {
		return Plan{}
	}
	return Plan{Actions: []Action{s.part(w)}, Reports: []Report{note(v1alpha1.EventMirrorRecreated,
		fmt.Sprintf("The Job ended in worker %s with %d indexes left; it is created there again", w.Name, left.Len()))}}
}

// endPart has the mirror of a shard end as the whole Job does.
func endPart(s *Snapshot, w *Worker) Plan {
	ending := shards.Ending(s.Part.HubJob)
	if ending == nil || mirror.OutcomeOf(w.Mirror) != mirror.Undecided {
		return Plan{}
	}
	if wait := w.Patches.backoff(freePatches, s.Now); wait > 0 {
		return Plan{After: wait}
	}
	status := *w.Mirror.Status.DeepCopy()
	status.Conditions = []batchv1.JobCondition{*ending}
	return Plan{Actions: []Action{SeedMirror{At: At{w.Name, w.Mirror}, Status: status}}}
}
