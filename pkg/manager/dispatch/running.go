package dispatch

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/wake"
)

// planUnmirrored creates the mirror. A Job with progress, or one that something goes along with,
// gets it suspended: that's seen to before it may start.
func planUnmirrored(s *Snapshot) Plan {
	if wait := s.Mirrors.patience(freeMirrors, s.Now); wait > 0 {
		return Plan{After: wait, Reports: []Report{warn(v1alpha1.EventMirrorRecreated,
			"Worker "+s.Home.Worker+": somebody there keeps deleting the Job")}}
	}
	target := s.target(s.Home)
	target.FreshStart, target.DeadlineSpent = mirror.FreshStart(s.Job), mirror.DeadlineSpent(s.Job, s.Now)
	target.Suspended = mirror.NeedsSeed(s.Job) || len(s.Carry.Kinds) > 0
	_, problem := onClusterLost(s)
	m := mirror.Project(s.Job, target)
	carry.Mark(m, s.Carry.Kinds)
	return Plan{
		Actions: []Action{CreateMirror{Worker: s.Home.Worker, Mirror: m, VerifyWanted: s.hadMirror()}},
		Reports: append(problem, note(v1alpha1.EventMirrored, "Created in worker "+s.Home.Worker)),
		Again:   true,
	}
}

// hadMirror: this isn't the Job's first mirror, as the hub shows that it ran. So it may be that the
// Job has ended and gone in the meantime, and that the hub's cache is behind: that of a manager
// that was stopped for a while, and doesn't know yet that it leads no more.
func (s *Snapshot) hadMirror() bool { return s.Job.Status.StartTime != nil || mirror.NeedsSeed(s.Job) }

func planMirrorLeaving(s *Snapshot) Plan {
	if s.endedShort() {
		return Plan{} // see reopen
	}
	return Plan{Reports: []Report{warn(v1alpha1.EventMirrorRecreated,
		"The Job was deleted in worker "+s.Home.Worker+"; it is created there again when it is gone")}}
}

// planMirrored keeps a mirror and its hub Job in step: the worker's status comes up, then the hub's
// spec goes down, then what keeps the Pods waiting is told.
func planMirrored(s *Snapshot) Plan {
	var plan Plan
	for _, step := range []func(*Snapshot) Plan{confirm, seed, reflect, reopen, bringAlong, align, unstick, relocate} {
		next := step(s)
		plan.Actions = next.Actions
		plan.Reports = append(plan.Reports, next.Reports...)
		plan.After = wake.Soonest(plan.After, next.After)
		plan.AwaitsRoom = plan.AwaitsRoom || next.AwaitsRoom
		plan.Behind = plan.Behind || next.Behind
		if len(plan.Actions) > 0 {
			plan.Again = true
			return plan
		}
	}
	plan.After = wake.Soonest(plan.After, s.Timing.Recheck)
	return plan
}

// seed writes the progress known at the hub into a mirror that has not started and knows less.
func seed(s *Snapshot) Plan {
	status, due := mirror.SeedDue(s.Job, s.Home.Mirror)
	if !due {
		return Plan{}
	}
	return Plan{Actions: []Action{SeedMirror{Worker: s.Home.Worker, Mirror: s.Home.Mirror, Status: status}}}
}

// reflect brings the hub Job's status to the mirror's.
func reflect(s *Snapshot) Plan {
	if s.StatusRejected {
		return Plan{}
	}
	switch verdict := mirror.Reflect(s.Job, s.Home.Mirror, s.Now).(type) {
	case mirror.Next:
		return s.writeStatus(verdict, s.endedShort())
	case mirror.Deferred:
		return s.deferred(verdict)
	case mirror.Violation:
		return Plan{Reports: []Report{violated(s.Home, verdict)}}
	default:
		return Plan{}
	}
}

// endedShort: the mirror is at its end, and the Job isn't. Something waits for the status that
// tells of it.
func (s *Snapshot) endedShort() bool {
	m := s.Home.Mirror
	return mirror.Finished(m) && mirror.EndedShort(s.Job, m, s.Now)
}

// reopen removes a mirror that has ended with fewer completions than the hub Job wants by now, once
// the hub has its progress: the one that follows goes on from there.
func reopen(s *Snapshot) Plan {
	m := s.Home.Mirror
	if !s.endedShort() {
		return Plan{}
	}
	if _, shown := mirror.Reflect(s.Job, m, s.Now).(mirror.Unchanged); !shown {
		return Plan{}
	}
	return Plan{
		Actions: remove(s.Home, ""),
		Reports: []Report{note(v1alpha1.EventMirrorRecreated, fmt.Sprintf(
			"The Job ended in worker %s with %d of %d completions: it heard too late of more; it is created there again",
			s.Home.Worker, s.Job.Status.Succeeded, ptr.Deref(s.Job.Spec.Completions, 0)))},
	}
}

func violated(seat *Seat, verdict mirror.Violation) Report {
	return Report{
		Reason: v1alpha1.EventStatusRejected, Warning: true, Rule: verdict.Rule,
		Message: fmt.Sprintf("Worker %s sent a status that breaks the rule %s: %s", seat.Worker, verdict.Rule, verdict.Message),
	}
}

// deferred waits for the mirror. Only an end that is held back is news.
func (s *Snapshot) deferred(verdict mirror.Deferred) Plan {
	var plan Plan
	if !verdict.Until.IsZero() {
		plan.After = max(verdict.Until.Sub(s.Now), s.Timing.ProgressFloor)
	}
	if verdict.Why == mirror.WhyPodsRemain {
		plan.Reports = []Report{note(v1alpha1.EventDeferred,
			"The Job has ended in worker "+s.Home.Worker+"; its end is shown when the last of its Pods has ended")}
	}
	return plan
}

// align brings the mirror's spec to the hub's.
func align(s *Snapshot) Plan {
	m, target := s.Home.Mirror, s.target(s.Home)
	target.Suspended = s.isHeld()
	switch drift := mirror.Drift(s.Job, m, target).(type) {
	case mirror.Patch:
		return s.patch(drift)
	case mirror.Recreate:
		return Plan{
			Actions: remove(s.Home, ""),
			Reports: []Report{note(v1alpha1.EventMirrorRecreated,
				fmt.Sprintf("Created anew in worker %s: %s: %s", s.Home.Worker, drift.Field, drift.Reason))},
		}
	case mirror.Refuse:
		return Plan{
			Reports:    []Report{warn(v1alpha1.EventDrift, fmt.Sprintf("Worker %s: %s: %s", s.Home.Worker, drift.Field, drift.Message))},
			AwaitsRoom: true,
		}
	case mirror.None:
		return Plan{Reports: s.differences(drift.Notes)}
	default:
		return Plan{}
	}
}

// patch changes the mirror in place; but a Job that is to be resumed where there is no room any
// more goes elsewhere, and what the worker's admission keeps changing back is told, not fought
// over.
func (s *Snapshot) patch(patch mirror.Patch) Plan {
	switch {
	case s.Unmet.Diff == patch.Diff():
		return Plan{Reports: s.differences(s.Unmet.Notes)}
	case s.isResuming() && !s.Fits && mirror.OutcomeOf(s.Home.Mirror) == mirror.Undecided:
		return Plan{
			Actions:    []Action{Place{Leave: s.Home.Worker, Reason: "worker " + s.Home.Worker + " has no room to resume it"}},
			AwaitsRoom: true,
		}
	case s.Patches.patience(freePatches, s.Now) > 0:
		return s.bePatient(patch, s.Patches.patience(freePatches, s.Now))
	default:
		return Plan{Actions: []Action{PatchMirror{Worker: s.Home.Worker, Mirror: s.Home.Mirror, Patch: patch}}}
	}
}

// isResuming: the hub Job runs (again), its mirror is still suspended.
func (s *Snapshot) isResuming() bool {
	return !mirror.Suspended(s.Job) && mirror.Suspended(s.Home.Mirror)
}

// differences tells what the worker's admission changed.
func (s *Snapshot) differences(notes []mirror.Note) []Report {
	if len(notes) == 0 {
		return nil
	}
	texts := make([]string, 0, len(notes))
	for _, n := range notes {
		texts = append(texts, n.Field+": "+n.Message)
	}
	return []Report{warn(v1alpha1.EventDrift, "Worker "+s.Home.Worker+": "+strings.Join(texts, "; "))}
}
