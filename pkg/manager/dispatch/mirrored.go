package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// planMissing creates the mirror. A Job with progress, or one with objects to carry, gets a
// suspended one: the mirror is seeded, and the objects are carried, before it may start.
func planMissing(s *Snapshot, w *Worker) Plan {
	if wait := w.Creations.backoff(freeCreations, s.Now); wait > 0 {
		return Plan{After: wait, Reports: []Report{warn(v1alpha1.EventMirrorRecreated,
			"Worker "+w.Name+": somebody there keeps deleting the Job")}}
	}
	policy, problem := onClusterLost(s)
	if s.vanished(w) && policy == v1alpha1.OnClusterLostWait {
		// perhaps it's there, and has only lost its marks
		plan := Plan{Again: true, Actions: []Action{ConfirmLeft{At{Name: w.Name}}}, Reports: append(problem, warn(v1alpha1.EventMirrorRecreated, gone(w)+
			": it isn't run again, as its annotation "+v1alpha1.AnnotationOnClusterLost+" says; change that, or create the Job anew, to have it run"))}
		if next, is := mirror.Unplaced(s.Job, s.Now).(mirror.Next); is && s.Part == nil {
			plan.Actions = append(plan.Actions, s.newWriteStatus(&next.Status, hubstate.Changes{hubstate.Vanished: w.Name}))
		}
		return plan
	}
	target := s.target(w)
	target.FreshStart, target.DeadlineSpent = mirror.StartsFresh(s.Job), mirror.DeadlineSpent(s.Job, s.Now)
	target.Suspended = mirror.NeedsSeed(s.Job) || len(w.Carry.Kinds) > 0
	_, invalid := podStartTimeout(s.Job)
	problem = append(problem, invalid...)
	m := mirror.Project(s.Job, target)
	plan := Plan{Reports: append(problem, note(v1alpha1.EventMirrored, "Created in worker "+w.Name)), Again: true}
	if s.vanished(w) {
		plan.Reports = append(plan.Reports, warn(v1alpha1.EventMirrorRecreated, gone(w)+": what its Pods did may be done again"))
	}
	plan.Actions = append(plan.Actions, CreateMirror{At{w.Name, m}})
	return plan
}

// isMissed reports whether it's open whether the worker has the mirror.
func (w *Worker) isMissed() bool {
	return w.Synced && w.Missed && w.Mirror == nil && w.Orphan == nil
}

func planMissed(_ *Snapshot, w *Worker) Plan {
	return Plan{Actions: []Action{ConfirmLeft{At{Name: w.Name}}}, Again: true}
}

func gone(w *Worker) string {
	return "The Job is gone from worker " + w.Name + ", and the hub hasn't seen how it ended there"
}

// vanished reports whether Pods of the Job may have run in the worker, by what the hub last heard
// of a mirror that isn't there any more, and that the manager hasn't deleted. One that had
// completed what it was to, and of which nothing ran, may have been replaced by the manager that
// led before. Of a Job that moved, and of shards, the hub's status may be of another worker: the
// account tells.
func (s *Snapshot) vanished(w *Worker) bool {
	if w.Replaced || mirror.Suspended(s.Job) {
		return false
	}
	switch {
	case s.Part != nil:
	case hubstate.Get(s.Job, hubstate.Vanished) == w.Name:
		return true
	case !mirror.Moved(s.Job):
		return s.Job.Status.Active > 0 || s.Job.Status.StartTime != nil && s.Job.Status.Succeeded == 0
	}
	return slices.ContainsFunc(s.Accounted, func(m usage.Mirror) bool { return m.Worker == w.Name && !m.Left && m.Pods > 0 })
}

// planDeleted waits until the mirror is gone. If somebody keeps it, such as by a finalizer, the Job
// goes elsewhere when the worker has had the time that it has for releasing a Job.
func planDeleted(s *Snapshot, w *Worker) Plan {
	var plan Plan
	if mirror.Suspended(s.Job) && isRunning(w.Mirror) {
		if plan.After = w.Patches.backoff(freePatches, s.Now); plan.After == 0 {
			plan.Actions = []Action{SuspendMirror{At: At{w.Name, w.Mirror}, Exactly: true}}
		}
	}
	isNext := s.Part != nil && mirror.Finished(w.Mirror) && s.Part.IsOutdated(s.Part.HubJob, w.Mirror) // see planOutdated
	if !isNext && (s.Part != nil || !s.endedShort(w)) {                                                // see reopen
		plan.Reports = []Report{warn(v1alpha1.EventMirrorRecreated,
			"The Job was deleted in worker "+w.Name+"; it is created there again when it is gone")}
	}
	plan.awaitRelease(s, w)
	switch notice := s.releaseNotice(w); {
	case s.isGivenUp(w):
		plan.Actions = append(plan.Actions, Place{Leave: w.Name, Must: true, Reason: "worker " + w.Name + " doesn't remove the Job" + w.whyNotReleased()})
		plan.AwaitsCapacity = true
	case notice > 0:
		plan.After = wake.Soonest(plan.After, notice)
	default:
		plan.Reports = append(plan.Reports, warn(v1alpha1.EventNotReleased, "Worker "+w.Name+" is still removing the Job"+w.whyNotReleased()))
	}
	return plan
}

func planTakenBack(s *Snapshot, w *Worker) Plan {
	next, _ := s.takenProgress(w)
	plan := s.planStatus(next, nil, true)
	plan.Again = true
	return plan
}

// planMirrored keeps a mirror and its hub Job in step: the worker's status goes up, then the hub's
// spec goes down, then the reason for which Pods wait is reported. The first step with an action
// ends the plan.
func planMirrored(s *Snapshot, w *Worker) Plan {
	var plan Plan
	for _, step := range s.steps() {
		next := step(s, w)
		plan.add(next)
		if len(next.Actions) > 0 {
			plan.Actions, plan.Again = next.Actions, true
			return plan
		}
	}
	plan.After = wake.Soonest(plan.After, s.Timing.Recheck)
	return plan
}

// steps are those of planMirrored. The statuses of shards are brought to the hub together.
func (s *Snapshot) steps() []func(*Snapshot, *Worker) Plan {
	if s.Part != nil {
		return []func(*Snapshot, *Worker) Plan{
			unfence,      // a fenced mirror may continue
			endPart,      // the mirror ends as the whole Job does
			reopenPart,   // one that ended before its shard is deleted
			recallPart,   // one that would run what others do is stopped
			seed,         // one that starts knows the Job's progress
			carryObjects, // its Pods find what they refer to
			align,        // its spec is the hub's
			unstick,      // no Pod runs: the reason is shown, and then the shard moves
			unended,      // all Pods have ended, and the Job hasn't: that is shown
			halted,       // Pods don't go on: that is shown
			relocate,     // the shard is to leave the worker
		}
	}
	return []func(*Snapshot, *Worker) Plan{
		replacedWhole, // the worker has a mirror that nobody knows: that is shown
		unfence,       // a fenced mirror may continue
		seed,          // one that starts knows the Job's progress
		reflect,       // the hub shows the worker's status
		reopen,        // a mirror that ended with too few completions is deleted
		carryObjects,  // its Pods find what they refer to
		align,         // its spec is the hub's
		unstick,       // no Pod runs: the reason is shown, and then the Job moves
		unended,       // all Pods have ended, and the Job hasn't: that is shown
		halted,        // Pods don't go on: that is shown
		relocate,      // the Job is to leave the worker
		goBack,        // the Job prefers another worker
	}
}

// unfence confirms to the worker's Job controller that a Job that it has fenced may continue: it is
// still placed there. The hub may reach the worker, and not be able to renew its Lease: then the
// controller fences the Job again each time.
func unfence(s *Snapshot, w *Worker) Plan {
	if !v1alpha1.IsFenced(w.Mirror) || mirror.Finished(w.Mirror) {
		return Plan{}
	}
	if wait := w.Patches.backoff(freePatches, s.Now); wait > 0 {
		return Plan{After: wait}
	}
	return Plan{
		Actions: []Action{UnfenceMirror{At{w.Name, w.Mirror}}},
		Reports: []Report{note(v1alpha1.EventConfirmed, "Worker "+w.Name+
			" had stopped the Job while it was out of touch with the hub; it may continue")},
	}
}

// seed writes the progress known at the hub into a mirror that is suspended and knows less.
func seed(s *Snapshot, w *Worker) Plan {
	status, due := mirror.SeedDue(s.Job, w.Mirror)
	if !due {
		return Plan{}
	}
	if wait := w.Patches.backoff(freePatches, s.Now); wait > 0 {
		return Plan{After: wait}
	}
	return Plan{Actions: []Action{SeedMirror{At: At{w.Name, w.Mirror}, Status: status}}}
}

// reflect brings the hub Job's status to the mirror's.
func reflect(s *Snapshot, w *Worker) Plan {
	if w.StatusRejected {
		return Plan{}
	}
	switch verdict := mirror.Reflect(s.Job, w.Mirror, s.Now).(type) {
	case mirror.Next:
		return s.planStatus(verdict, nil, s.endedShort(w))
	case mirror.Deferred:
		return s.deferred("worker "+w.Name, verdict)
	case mirror.Violation:
		plan := Plan{Reports: []Report{violated("Worker "+w.Name, verdict)}}
		plan.recall(s, w)
		return plan
	default:
		return Plan{}
	}
}

// recall stops a mirror that has lost progress which the hub shows, as after a restore of its
// worker's etcd: it would make that again. When it has stopped, it's seeded, and goes on.
func (p *Plan) recall(s *Snapshot, w *Worker) {
	_, malformed := mirror.Check(s.Job, w.Mirror, s.Now)
	if !malformed && mirror.EndedForgetful(s.Job, w.Mirror) {
		p.Actions = w.deletions()
		p.Reports = append(p.Reports, warn(v1alpha1.EventProgressRestored, "The Job ended in worker "+w.Name+
			", which had lost progress of it, as after a restore of its etcd: it's created there again, with that progress"))
		return
	}
	if malformed || mirror.Suspended(w.Mirror) || !mirror.Forgot(s.Job, w.Mirror) {
		return
	}
	if p.After = w.Patches.backoff(freePatches, s.Now); p.After > 0 {
		return
	}
	p.Actions = []Action{SuspendMirror{At: At{w.Name, w.Mirror}, Exactly: true}}
	p.Reports = append(p.Reports, warn(v1alpha1.EventProgressRestored, "Worker "+w.Name+
		" has lost progress of the Job, as after a restore of its etcd: the Job is stopped there until it has that again"))
}

// recallPart stops the mirror of a shard that would run what others do, as it was made again
// without its status: then it's seeded, and goes on.
func recallPart(s *Snapshot, w *Worker) Plan {
	_, malformed := mirror.Check(s.Part.HubJob, w.Mirror, s.Now)
	if malformed || mirror.Suspended(w.Mirror) || !mirror.Forgot(s.Job, w.Mirror) {
		return Plan{}
	}
	if wait := w.Patches.backoff(freePatches, s.Now); wait > 0 {
		return Plan{After: wait}
	}
	return Plan{Actions: []Action{SuspendMirror{At: At{w.Name, w.Mirror}}}, Reports: []Report{warn(v1alpha1.EventProgressRestored, "Worker "+w.Name+
		" doesn't know which indexes run elsewhere, as after a restore of the Job from a backup: it's stopped there until it has that again")}}
}

// violated reports a status that breaks a rule. from is who sent it, as a sentence begins.
func violated(from string, verdict mirror.Violation) Report {
	return Report{
		Reason: v1alpha1.EventStatusRejected, Warning: true, Rule: verdict.Rule,
		Message: fmt.Sprintf("%s sent a status that breaks the rule %s: %s", from, verdict.Rule, verdict.Message),
	}
}

// deferred waits for the mirror, in a worker or several. Only an end that is held back is worth an
// event.
func (s *Snapshot) deferred(in string, verdict mirror.Deferred) Plan {
	var plan Plan
	if !verdict.Until.IsZero() {
		plan.After = max(verdict.Until.Sub(s.Now), s.Timing.ProgressFloor)
	}
	if verdict.Why == mirror.WhyPodsRemain {
		plan.Reports = []Report{note(v1alpha1.EventDeferred,
			"The Job has ended in "+in+"; its end is shown when the last of its Pods has ended")}
	}
	return plan
}

// endedShort reports whether the mirror has ended with fewer completions than the hub Job wants by
// now.
func (s *Snapshot) endedShort(w *Worker) bool {
	return mirror.Finished(w.Mirror) && mirror.EndedShort(s.Job, w.Mirror, s.Now)
}

// reopen deletes a mirror that ended short, once the hub has its progress: the next one continues
// from there.
func reopen(s *Snapshot, w *Worker) Plan {
	if !s.endedShort(w) {
		return Plan{}
	}
	if _, shown := mirror.Reflect(s.Job, w.Mirror, s.Now).(mirror.Unchanged); !shown {
		return Plan{}
	}
	plan := Plan{Reports: []Report{note(v1alpha1.EventMirrorRecreated, fmt.Sprintf(
		"The Job ended in worker %s with %d of %d completions: the higher number reached it too late; it is created there again",
		w.Name, s.Job.Status.Succeeded, ptr.Deref(s.Job.Spec.Completions, 0)))}}
	plan.Actions = w.deletions()
	return plan
}

// align brings the mirror's spec to the hub's.
func align(s *Snapshot, w *Worker) Plan {
	target := s.target(w)
	target.Suspended = w.isHeld()
	agreed := mirror.AgreedDigest(s.Job, w.Mirror, target)
	if agreed != 0 && agreed == w.Agreed {
		return Plan{}
	}
	switch drift := mirror.Drift(s.Job, w.Mirror, target).(type) {
	case mirror.Patch:
		return s.patch(w, drift)
	case mirror.PatchRecent:
		return s.patchRecent(w, drift)
	case mirror.Recreate:
		plan := Plan{Reports: []Report{note(v1alpha1.EventMirrorRecreated,
			fmt.Sprintf("Created anew in worker %s: %s: %s", w.Name, drift.Field, drift.Reason))}}
		plan.Actions = w.deletions()
		return plan
	case mirror.Refuse:
		return Plan{
			Reports:        []Report{warn(v1alpha1.EventDrift, fmt.Sprintf("Worker %s: %s: %s", w.Name, drift.Field, drift.Message))},
			AwaitsCapacity: true,
		}
	case mirror.None:
		if len(drift.Notes) == 0 {
			return Plan{Agreed: agreed}
		}
		return Plan{Reports: w.differences(drift.Notes)}
	default:
		return Plan{}
	}
}

// patch changes the mirror in place. A Job that is to be resumed where there is no free capacity
// any more moves instead. What the worker's admission keeps changing back is reported, and tried
// again more and more rarely: nothing tells when a policy has changed.
func (s *Snapshot) patch(w *Worker, patch mirror.Patch) Plan {
	wait, unmet := w.Patches.backoff(freePatches, s.Now), w.Unmet.wait(patch.Diff(), minBackoff, s.Now)
	switch {
	case unmet > 0:
		return Plan{After: unmet, Reports: w.differences(w.Unmet.Notes)}
	case s.Group.Elsewhere != "" && s.isResuming(w):
		return planGroupElsewhere(s, w)
	case s.Part == nil && s.isResuming(w) && !w.Fits && mirror.OutcomeOf(w.Mirror) == mirror.Undecided:
		return Plan{
			Actions:        []Action{Place{Leave: w.Name, Reason: "worker " + w.Name + " has no room to resume it"}},
			AwaitsCapacity: true,
		}
	case wait > 0:
		return delayPatch(w, patch, wait)
	default:
		return Plan{Actions: []Action{PatchMirror{At: At{w.Name, w.Mirror}, Patch: patch}}}
	}
}

// patchRecent changes recent fields of the mirror in place. What the worker refused is reported:
// it's mostly a matter of its release.
func (s *Snapshot) patchRecent(w *Worker, patch mirror.PatchRecent) Plan {
	if wait := w.Unmet.wait(patch.Diff(), maxUnmetBackoff, s.Now); wait > 0 {
		return Plan{After: wait, Reports: w.differences(w.Unmet.Notes)}
	}
	if wait := w.Patches.backoff(freePatches, s.Now); wait > 0 {
		return Plan{After: wait, Reports: w.differences(patch.Notes)}
	}
	return Plan{Actions: []Action{PatchRecentFields{At: At{w.Name, w.Mirror}, Patch: patch}}}
}

// isResuming reports whether the hub Job runs (again) while its mirror is still suspended.
func (s *Snapshot) isResuming(w *Worker) bool {
	return !mirror.Suspended(s.Job) && mirror.Suspended(w.Mirror)
}

// differences reports what the worker's admission changed.
func (w *Worker) differences(notes []mirror.Note) []Report {
	if len(notes) == 0 {
		return nil
	}
	texts := make([]string, 0, len(notes))
	for _, n := range notes {
		texts = append(texts, n.Field+": "+n.Message)
	}
	return []Report{warn(v1alpha1.EventDrift, "Worker "+w.Name+": "+strings.Join(texts, "; "))}
}

func planUnwanted(s *Snapshot, w *Worker) Plan {
	if mirror.Suspended(s.Job) {
		if plan := planSuspended(s); len(plan.Actions) > 0 {
			return plan
		}
	}
	plan := relocate(s, w)
	plan.Again = true
	return plan
}

// relocate moves a Job away from a worker that is drained, or that its cluster selector does not
// allow any more, or that is being removed. Without another that fits the Job continues where it
// is, and the reason is reported. One that is about to end stays for that, as long as a worker may
// take to release a Job.
func relocate(s *Snapshot, w *Worker) Plan {
	why := w.Unwanted
	if why == "" && w.Removal == v1alpha1.RemovalMove {
		why = "worker " + w.Name + " is being removed"
	}
	var plan Plan
	switch {
	case why == "":
		return plan
	case w.Mirror != nil && mirror.OutcomeOf(w.Mirror) != mirror.Undecided:
		if plan.awaitRelease(s, w); !s.isOverdue(w) {
			return plan
		}
	}
	plan.Actions, plan.AwaitsCapacity = []Action{Place{Leave: w.Name, Reason: why, Must: true}}, true
	return plan
}
