package dispatch

import (
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Situation names where a Job is on its way.
type Situation string

// The situations, in the order in which they're looked for.
const (
	Absent            Situation = "Absent"
	Leftover          Situation = "Leftover"
	Deleting          Situation = "Deleting"
	Finished          Situation = "Finished"
	Displaced         Situation = "Displaced"
	Handover          Situation = "Handover"
	Stray             Situation = "Stray"
	HomeUnknown       Situation = "HomeUnknown"
	HomeBeingRemoved  Situation = "HomeBeingRemoved"
	HomeUnwanted      Situation = "HomeUnwanted"
	AwaitingAdmission Situation = "AwaitingAdmission"
	SuspendedAtHub    Situation = "SuspendedAtHub"
	Unplaced          Situation = "Unplaced"
	LastNews          Situation = "LastNews"
	TakenBack         Situation = "TakenBack"
	HomeLost          Situation = "HomeLost"
	HomeOutOfTouch    Situation = "HomeOutOfTouch"
	HomeRefuses       Situation = "HomeRefuses"
	Unmirrored        Situation = "Unmirrored"
	MirrorLeaving     Situation = "MirrorLeaving"
	Mirrored          Situation = "Mirrored"
)

// situations is the ordered table that Decide walks.
var situations = []struct {
	name Situation
	when func(*Snapshot) bool
	plan func(*Snapshot) Plan
}{
	// No hub Job of ours has this name: what stands for it in workers goes.
	{Absent, isAbsent, planAbsent},
	// A mirror of an earlier Job of this name goes before anything else, so that no name is taken
	// and no status is mistaken for this Job's.
	{Leftover, hasLeftover, planLeftover},
	// The hub Job leaves after its mirror.
	{Deleting, isDeleting, planDeleting},
	// Finished is finished: no placement, no mirror, no status any more.
	{Finished, isFinished, planFinished},
	// Somebody removed the placement from a Job that runs: it's written again.
	{Displaced, isDisplaced, planDisplaced},
	// The copy that a moved Job leaves stops, and gives the hub the progress that it has made,
	// before the Job goes on at home.
	{Handover, isHandover, planHandover},
	// A copy elsewhere ends before this Job goes on anywhere.
	{Stray, hasStray, planStray},
	{HomeUnknown, isHomeUnknown, planHomeUnknown},
	{HomeBeingRemoved, isHomeBeingRemoved, planHomeBeingRemoved},
	// A Job that shall leave its worker, and has no mirror there, gets none.
	{HomeUnwanted, isHomeUnwanted, planHomeUnwanted},
	// A Job that its queue will resume when it has a place gets one.
	{AwaitingAdmission, isAwaitingAdmission, planAwaitingAdmission},
	// A Job that is suspended before it has a mirror waits on the hub.
	{SuspendedAtHub, isSuspendedAtHub, planSuspendedAtHub},
	{Unplaced, isUnplaced, planUnplaced},
	// What a worker had told before it went out of touch is shown before it's given up.
	{LastNews, hasLastNews, planLastNews},
	// A Job that its queue takes back from a lost worker is placed when it has quota.
	{TakenBack, isTakenBack, planSuspendedAtHub},
	// The worker is given up: the Job goes on elsewhere.
	{HomeLost, isHomeLost, planHomeLost},
	// Nothing is known of the mirror: nothing is done, nothing is undone.
	{HomeOutOfTouch, isHomeOutOfTouch, planHomeOutOfTouch},
	{HomeRefuses, isHomeRefusing, planHomeRefuses},
	{Unmirrored, isUnmirrored, planUnmirrored},
	// Somebody deleted the mirror in the worker; a new one needs its name.
	{MirrorLeaving, isMirrorLeaving, planMirrorLeaving},
	{Mirrored, func(*Snapshot) bool { return true }, planMirrored},
}

// Decide says what is to be done about a Job now.
func Decide(s *Snapshot) Plan {
	for _, situation := range situations {
		if situation.when(s) {
			plan := situation.plan(s)
			plan.Situation = situation.name
			return plan
		}
	}
	return Plan{}
}

func isAbsent(s *Snapshot) bool   { return s.Job == nil || !mirror.Managed(s.Job) }
func isDeleting(s *Snapshot) bool { return s.Job.DeletionTimestamp != nil }
func isFinished(s *Snapshot) bool { return mirror.Finished(s.Job) }
func isUnplaced(s *Snapshot) bool { return s.Home == nil }

func isSuspendedAtHub(s *Snapshot) bool {
	return mirror.Suspended(s.Job) && (s.Home == nil || s.Home.Synced && s.Home.Mirror == nil)
}

func isHomeUnknown(s *Snapshot) bool { return s.Home != nil && !s.Home.Registered }

func isHomeOutOfTouch(s *Snapshot) bool { return !s.Home.Synced }

func isUnmirrored(s *Snapshot) bool { return s.Home.Mirror == nil }

func isMirrorLeaving(s *Snapshot) bool { return s.Home.Mirror.DeletionTimestamp != nil }

// isHomeRefusing: the worker has a foreign Job of this name, or its admission rejected the mirror;
// there is no mirror then.
func isHomeRefusing(s *Snapshot) bool {
	return s.Home.Mirror == nil && s.PassedOver[s.Home.Worker] != ""
}

// seats returns home, if any, and all other seats.
func (s *Snapshot) seats() []*Seat {
	var all []*Seat
	if s.Home != nil {
		all = append(all, s.Home)
	}
	for i := range s.Elsewhere {
		all = append(all, &s.Elsewhere[i])
	}
	return all
}
