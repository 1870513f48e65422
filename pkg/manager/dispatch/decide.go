package dispatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Situation names the row of a table that made a plan.
type Situation string

// The situations of a Job, in the order in which they are looked for.
const (
	Absent           Situation = "Absent"
	Finished         Situation = "Finished"
	Deleting         Situation = "Deleting"
	Undecipherable   Situation = "Undecipherable"
	PlacementMissing Situation = "PlacementMissing"
	Handover         Situation = "Handover"
	NotDispatched    Situation = "NotDispatched"
	Queued           Situation = "Queued"
	Suspended        Situation = "Suspended"
	Unplaced         Situation = "Unplaced"
	InShards         Situation = "InShards"
)

// The situations of a Job, or of a shard of it, in the worker that it is assigned to, likewise.
const (
	MirrorTakenBack    Situation = "MirrorTakenBack"
	MirrorMissed       Situation = "MirrorMissed"
	PartSettled        Situation = "PartSettled"
	WorkerUnregistered Situation = "WorkerUnregistered"
	PartStopping       Situation = "PartStopping"
	WorkerBeingRemoved Situation = "WorkerBeingRemoved"
	WorkerUnwanted     Situation = "WorkerUnwanted"
	QueuedAtWorker     Situation = "QueuedAtWorker"
	SuspendedAtWorker  Situation = "SuspendedAtWorker"
	StatusUnreflected  Situation = "StatusUnreflected"
	QuotaReclaimed     Situation = "QuotaReclaimed"
	WorkerLost         Situation = "WorkerLost"
	WorkerUnreachable  Situation = "WorkerUnreachable"
	MirrorOutdated     Situation = "MirrorOutdated"
	WorkerRefuses      Situation = "WorkerRefuses"
	NameTaken          Situation = "NameTaken"
	GroupElsewhere     Situation = "GroupElsewhere"
	MirrorMissing      Situation = "MirrorMissing"
	MirrorDeleted      Situation = "MirrorDeleted"
	Mirrored           Situation = "Mirrored"
)

// jobSituations are about the Job as a whole.
var jobSituations = []struct {
	name Situation
	when func(*Snapshot) bool
	plan func(*Snapshot) Plan
}{
	// No hub Job of ours has this name.
	{Absent, isAbsent, planAbsent},
	// A finished Job gets no placement, no mirror and no status any more. It waits for nothing,
	// also when it's being deleted.
	{Finished, func(s *Snapshot) bool { return mirror.Finished(s.Job) }, planFinished},
	// The hub Job is removed after its mirror.
	{Deleting, func(s *Snapshot) bool { return s.Job.DeletionTimestamp != nil }, planDeleting},
	// Someone has edited the placement of a Job in several workers: nothing is done, nothing is
	// undone.
	{Undecipherable, func(s *Snapshot) bool { return s.Divided != nil && s.Divided.Err != nil }, planUndecipherable},
	// The hub lacks the placement of a Job that has a mirror: it is written again.
	{PlacementMissing, (*Snapshot).isPlacementMissing, planPlacementMissing},
	// The mirror that a moved Job left is stopped, and its progress brought to the hub, before the
	// Job continues in the worker that it is assigned to.
	{Handover, isHandover, planHandover},
	// No mirror is created for a Job of a namespace that is not dispatched.
	{NotDispatched, (*Snapshot).isHeldBack, planHeldBack},
	// A Job that its queue will resume when it is placed gets a placement.
	{Queued, func(s *Snapshot) bool { return !s.isPlaced() && s.awaitsPlacement() }, planQueued},
	// A Job that is suspended before it has a mirror waits on the hub.
	{Suspended, func(s *Snapshot) bool { return !s.isPlaced() && mirror.Suspended(s.Job) }, planSuspended},
	{Unplaced, func(s *Snapshot) bool { return !s.isPlaced() }, planUnplaced},
	// Each shard is in a situation of the table below.
	{InShards, func(s *Snapshot) bool { return s.Divided != nil }, planInShards},
}

// workerSituations are about the mirror of the Job, or of a shard of it, in one worker that it is
// assigned to.
var workerSituations = []struct {
	name Situation
	when func(*Snapshot, *Worker) bool
	plan func(*Snapshot, *Worker) Plan
}{
	// What a mirror did that was taken back is shown before the Job goes elsewhere.
	{MirrorTakenBack, func(s *Snapshot, w *Worker) bool { _, is := s.takenProgress(w); return is }, planTakenBack},
	// What the worker's watch doesn't show any more may be there still, without its marks.
	{MirrorMissed, func(s *Snapshot, w *Worker) bool { return w.isMissed() || s.isPartUnseen(w) }, planMissed},
	// A shard that has nothing more to run gets no mirror.
	{PartSettled, (*Snapshot).isPartSettled, func(*Snapshot, *Worker) Plan { return Plan{} }},
	{WorkerUnregistered, func(_ *Snapshot, w *Worker) bool { return !w.Registered }, planUnregistered},
	// A shard that leaves its worker.
	{PartStopping, (*Snapshot).isPartStopping, planPartStopping},
	{WorkerBeingRemoved, isBeingRemoved, planBeingRemoved},
	// A Job that is to leave its worker, and has no mirror there, gets none.
	{WorkerUnwanted, func(_ *Snapshot, w *Worker) bool { return w.Synced && w.Mirror == nil && w.Unwanted != "" }, planUnwanted},
	{QueuedAtWorker, func(s *Snapshot, w *Worker) bool { return s.awaitsPlacement() && w.isStopped() }, planQueuedAtWorker},
	{SuspendedAtWorker, isSuspendedAtWorker, func(s *Snapshot, _ *Worker) Plan { return planSuspended(s) }},
	// What a worker reported before it became unreachable is shown before the worker is given up.
	{StatusUnreflected, func(s *Snapshot, w *Worker) bool { return s.unreflected(w) != nil }, planUnreflected},
	// A Job whose queue takes its quota back from a lost worker is placed when it has quota again.
	{QuotaReclaimed, isQuotaReclaimed, func(s *Snapshot, _ *Worker) Plan { return planSuspended(s) }},
	// The worker is lost: the Job continues elsewhere.
	{WorkerLost, func(_ *Snapshot, w *Worker) bool { return w.isLost() }, planLost},
	// Nothing is known of the mirror: nothing is done, nothing is undone.
	{WorkerUnreachable, func(_ *Snapshot, w *Worker) bool { return !w.Synced }, planUnreachable},
	// The mirror is not one of this shard, or of the whole Job: it is deleted first.
	{MirrorOutdated, (*Snapshot).isOutdated, planOutdated},
	{WorkerRefuses, func(s *Snapshot, w *Worker) bool { return w.Mirror == nil && s.PassedOver[w.Name] != "" }, planRefused},
	// A mirror of an earlier Job of this name is deleted first.
	{NameTaken, func(_ *Snapshot, w *Worker) bool { return w.Orphan != nil }, planNameTaken},
	// No two Jobs of a group run in two workers.
	{GroupElsewhere, func(s *Snapshot, w *Worker) bool { return w.Mirror == nil && s.Group.Elsewhere != "" }, planGroupElsewhere},
	{MirrorMissing, func(_ *Snapshot, w *Worker) bool { return w.Mirror == nil }, planMissing},
	// Someone deleted the mirror in the worker; the next one needs its name. If it had ended before,
	// none follows.
	{MirrorDeleted, func(s *Snapshot, w *Worker) bool { return w.Mirror.DeletionTimestamp != nil && !s.IsEndedBy(w.Mirror) }, planDeleted},
	{Mirrored, func(*Snapshot, *Worker) bool { return true }, planMirrored},
}

// Decide says what is to be done about a Job now. It walks the table of the Job's situations, then,
// for a Job that is placed, that of its situations in the assigned worker. Then it adds what holds
// in any situation: cleanup, a finalizer that somebody removed, a recheck, an account that is
// behind, and reservations.
func Decide(s *Snapshot) Plan {
	if !isAbsent(s) {
		s.missing = s.findMissing()
	}
	plan := decide(s)
	plan.cleanUp(s)
	if s.lacksFinalizer() && !slices.ContainsFunc(plan.Actions, isStatusWrite) {
		plan.Actions, plan.Again = append([]Action{s.newWriteStatus(&s.Job.Status, nil)}, plan.Actions...), true
	}
	if waitsForOthers(plan.Situation) && plan.After == 0 && !plan.AwaitsCapacity {
		plan.After = s.Timing.Recheck // a worker that is removed sends no event of its mirror
	}
	if !slices.ContainsFunc(plan.Actions, isUrgent) && len(s.Used.Observations) > 0 && plan.Situation != Deleting {
		plan.completeAccount(s)
	}
	plan.Reserve = s.reservations()
	return plan
}

// waitsForOthers reports whether a situation ends by an event of another worker than the assigned.
func waitsForOthers(name Situation) bool {
	return name == Handover || name == Deleting
}

func decide(s *Snapshot) Plan {
	for _, row := range jobSituations {
		if row.when(s) {
			plan := row.plan(s)
			plan.Situation = row.name
			return plan
		}
	}
	return s.decideInWorker()
}

// decideInWorker walks the table of the situations in the assigned worker.
func (s *Snapshot) decideInWorker() Plan {
	for _, row := range workerSituations {
		if row.when(s, s.Assigned) {
			plan := row.plan(s, s.Assigned)
			plan.Situation = row.name
			plan.confirmFormer(s)
			return plan
		}
	}
	return Plan{}
}

// confirmFormer makes sure, before a Job starts in a worker, or leaves it without having started,
// that nothing of it is left in the one before: the hub remembers only the last one.
func (p *Plan) confirmFormer(s *Snapshot) {
	if former := s.former(); former != nil && slices.ContainsFunc(p.Actions, startsOrLeaves) {
		p.Actions = append([]Action{ConfirmLeft{At{Name: former.Name}}}, p.Actions...)
		p.awaitRelease(s, former)
	}
}

func startsOrLeaves(a Action) bool {
	switch a := a.(type) {
	case CreateMirror:
		return true
	case Place:
		return a.Leave != ""
	default:
		return false
	}
}

func isAbsent(s *Snapshot) bool { return s.Job == nil || !mirror.Managed(s.Job) }

// IsForsaken reports whether a Job that isn't ours is being deleted, and waits for our finalizer:
// it was created from an export of one that was ours.
func IsForsaken(j *batchv1.Job) bool {
	return !mirror.Managed(j) && j.DeletionTimestamp != nil && slices.Contains(j.Finalizers, v1alpha1.FinalizerMirror)
}

func planAbsent(s *Snapshot) (plan Plan) {
	if s.Job != nil && IsForsaken(s.Job) {
		plan.Actions = []Action{RemoveFinalizer{}}
	}
	return plan
}

// reservations name the workers in which capacity is reserved for the Job's Pods: the assigned
// ones, when the Job runs, or will run as soon as its queue knows its placement. A suspended mirror
// for whose Pods there is no free capacity has no reservation.
func (s *Snapshot) reservations() []Reservation {
	if isAbsent(s) || s.isHeldBack() || mirror.Finished(s.Job) || !s.Admission.WantsCapacity(s.Job) {
		return nil
	}
	if s.Divided != nil {
		return s.Divided.reservations()
	}
	w := s.Assigned
	if w == nil || !w.Registered || !w.Fits && (w.Mirror == nil || mirror.Suspended(w.Mirror)) {
		return nil
	}
	return []Reservation{{Worker: w.Name, Job: s.Admission.AsResumed(s.Job)}}
}

// otherMirrors returns the other workers with a mirror of this Job that is not being deleted.
func (s *Snapshot) otherMirrors() []*Worker {
	var found []*Worker
	for i := range s.Others {
		if m := s.Others[i].Mirror; m != nil && m.DeletionTimestamp == nil {
			found = append(found, &s.Others[i])
		}
	}
	return found
}

// planSuspended writes the Suspended condition that the hub's built-in Job controller would write:
// since 1.36 the API server refuses edits of a suspended Job's template without it.
func planSuspended(s *Snapshot) Plan {
	return s.writeOwnStatus(note(v1alpha1.EventSuspended, "Job suspended"))
}

// isSuspendedAtWorker reports whether a placed Job was suspended before it had a mirror. A shard
// that is stopping is suspended, and leaves when it has none.
func isSuspendedAtWorker(s *Snapshot, w *Worker) bool {
	return mirror.Suspended(s.Job) && w.Synced && w.Mirror == nil && !s.isPartStopping(w)
}

// writeOwnStatus writes the status of a Job without a mirror, which the hub alone knows. That of a
// divided Job follows from all its shards.
func (s *Snapshot) writeOwnStatus(report Report) Plan {
	if s.Part != nil {
		return Plan{}
	}
	next, ok := mirror.Unplaced(s.Job, s.Now).(mirror.Next)
	if !ok {
		return Plan{}
	}
	return Plan{
		Actions: []Action{s.newWriteStatus(&next.Status, nil)},
		Reports: []Report{report},
		Again:   true,
	}
}

// planUnplaced places the Job. The status of one that was resumed stops saying Suspended before
// that, as the Job may wait for room for long.
func planUnplaced(s *Snapshot) Plan {
	if plan := s.writeOwnStatus(note(v1alpha1.EventResumed, "Job resumed")); len(plan.Actions) > 0 {
		return plan
	}
	return s.place()
}

// place has the Job placed: in one worker, or in several if its user allows that, and there is
// something to divide. A queue that checks the placement knows one worker only.
func (s *Snapshot) place() Plan {
	if !shards.MayDivide(s.Job) || s.Admission.Checked || ptr.Deref(s.Job.Spec.Completions, 1) == 0 {
		return Plan{Actions: []Action{Place{}}, Again: true}
	}
	plan := Plan{Again: true}
	for _, w := range s.otherMirrors() { // of a placement that someone removed
		if w.Synced && !s.isOverdue(w) {
			return Plan{Reports: []Report{warn(v1alpha1.EventPending, "Waiting for worker "+w.Name+" to remove an earlier mirror of the Job")}}
		}
	}
	plan.Actions = []Action{Divide{}}
	return plan
}

// planUnregistered moves the Job. A WorkerCluster is deleted only after its registration Secret was
// deleted and the removal policy carried out, or by an admin: nobody counts on the worker any more.
func planUnregistered(_ *Snapshot, w *Worker) Plan { return w.leave("is not registered any more") }

// leave moves the Job away from a worker where it cannot stay.
func (w *Worker) leave(why string) Plan {
	return Plan{
		Actions: []Action{Place{Leave: w.Name, Must: true, Reason: "worker " + w.Name + " " + why}},
		Again:   true,
	}
}

// isBeingRemoved reports whether the Job has to leave a worker that is being removed. With the
// policy Wait only a Job without a mirror leaves.
func isBeingRemoved(_ *Snapshot, w *Worker) bool {
	switch w.Removal {
	case v1alpha1.RemovalOrphan:
		return true
	case v1alpha1.RemovalMove:
		return w.Synced && (w.Mirror == nil || mirror.OutcomeOf(w.Mirror) == mirror.Undecided)
	case v1alpha1.RemovalWait:
		return w.Synced && w.Mirror == nil
	default:
		return false
	}
}

func planBeingRemoved(_ *Snapshot, w *Worker) Plan { return w.leave("is being removed") }

// planRefused looks for another worker. The worker has a foreign Job of this name, or its admission
// rejected the mirror. Until another fits, the Job stays assigned, and is tried there again when
// the reason has expired.
func planRefused(s *Snapshot, w *Worker) Plan {
	return Plan{
		Actions:        []Action{Place{Leave: w.Name, Reason: s.PassedOver[w.Name], Must: true}},
		Again:          true,
		AwaitsCapacity: true,
		After:          s.Timing.StuckNotice,
	}
}

// planNameTaken waits until the name is free. If the worker keeps it, the Job goes elsewhere.
func planNameTaken(s *Snapshot, w *Worker) Plan {
	if !s.isOverdue(w) {
		return Plan{}
	}
	return Plan{
		Actions:        []Action{Place{Leave: w.Name, Reason: "worker " + w.Name + " keeps a Job of this name that stands for an earlier one"}},
		Again:          true,
		AwaitsCapacity: true,
		After:          s.Timing.StuckNotice,
	}
}

func (s *Snapshot) hasFinalizer() bool {
	return slices.Contains(s.Job.Finalizers, v1alpha1.FinalizerMirror)
}

// lacksFinalizer reports whether somebody has taken our finalizer off a Job that runs, such as by
// writing back an export that is older.
func (s *Snapshot) lacksFinalizer() bool {
	return !isAbsent(s) && s.isPlaced() && !s.isHeldBack() && !s.hasFinalizer() &&
		!mirror.Finished(s.Job) && s.Job.DeletionTimestamp == nil
}

// isUrgent reports whether an action goes before the account's. Place and Divide don't: a Job
// without room repeats them.
func isUrgent(a Action) bool {
	switch a.(type) {
	case Place, Divide:
		return false
	default:
		return true
	}
}

func isStatusWrite(a Action) bool {
	_, is := a.(WriteStatus)
	return is
}
