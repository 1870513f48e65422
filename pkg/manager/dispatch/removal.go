package dispatch

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// planDeleting deletes the mirror as the hub Job is being deleted, and removes the hub Job's
// finalizer once the mirror is gone: in the foreground that is when its Pods are gone, in the
// background at once. It waits neither for a worker that is lost nor for one that does not release
// the Job: a mirror there is an orphaned one then, and is deleted as such.
func planDeleting(s *Snapshot) Plan {
	if s.Deletion == "" {
		return Plan{}
	}
	var plan Plan
	var deletions []Action
	waits := false
	for _, w := range s.holders() {
		switch {
		case w.Registered && !w.Synced && !w.isLost():
			plan.awaitConnection(s, w, "to remove the Job there")
			waits = true
		case w.Synced && w.Mirror != nil && s.isOverdue(w):
			d := suspending(w)
			if s.Deletion == metav1.DeletePropagationOrphan {
				d.Suspend = false // its Pods are to run on
			}
			d.Propagation = s.Deletion
			plan.addCleanup(s, w, d) // the hub Job doesn't wait for it
		case w.Synced && w.Mirror != nil:
			if w.isLive() {
				deletions = append(deletions, DeleteMirror{At: At{w.Name, w.Mirror}, Propagation: s.Deletion})
			}
			plan.awaitDeletion(s, w)
			waits = true
		}
	}
	if plan.sideBySide(deletions); waits {
		return plan
	}
	plan.confirmGone(s)
	if s.hasFinalizer() { // somebody else's may hold it longer
		plan.Actions, plan.Again = append(plan.Actions, RemoveFinalizer{Stopped: s.hasStopped()}), true
	}
	return plan
}

// hasStopped reports whether a Job that's being deleted has no Pods any more.
func (s *Snapshot) hasStopped() bool {
	return s.Deletion != metav1.DeletePropagationOrphan &&
		!slices.ContainsFunc(s.holders(), func(w *Worker) bool { return !w.Synced || w.Mirror != nil })
}

// confirmGone looks for mirrors by name that the watches don't show, as they may have lost their
// marks. A worker has the time for its answers that it has for releasing a Job. One that is overdue
// is asked beside, for as long as somebody else's finalizer holds the Job.
func (p *Plan) confirmGone(s *Snapshot) {
	var confirms []Action
	for _, w := range s.holders() {
		confirm := ConfirmLeft{At{Name: w.Name}}
		switch {
		case !w.Synced || w.Mirror != nil || w.Orphan != nil:
		case s.isOverdue(w):
			if p.awaitRelease(s, w); !s.hasFinalizer() {
				p.attempt(s, w, confirm)
			}
		case s.hasFinalizer():
			p.awaitRelease(s, w)
			confirms = append(confirms, confirm)
		}
	}
	p.sideBySide(confirms)
}

// planFinished leaves everything as it is: the mirror stays, with its Pods and their logs, until
// the hub Job is gone. Only from a worker that is being removed the mirror is deleted now. The Job
// has lost its finalizer with its last status, unless somebody else wrote that. A mirror that runs
// although its Job has finished, such as one that was restored from a backup, is stopped, and a
// copy that has ended is removed.
func planFinished(s *Snapshot) Plan {
	var plan Plan
	var inWorkers []Action
	for _, w := range s.AssignedWorkers() {
		switch {
		case w.isMissed():
			inWorkers, plan.Again = append(inWorkers, ConfirmLeft{At{Name: w.Name}}), true
		case w.Mirror == nil:
		case w.Removal == v1alpha1.RemovalOrphan:
			inWorkers = append(inWorkers, DisownMirror{At{w.Name, w.Mirror}})
		case w.Removal != "" && w.isLive():
			inWorkers = append(inWorkers, deletion(w, w.Mirror))
		case w.isLive() && (!mirror.Finished(w.Mirror) || s.isCopy(w)):
			plan.addCleanup(s, w, suspending(w))
			plan.Reports = append(plan.Reports, warn(v1alpha1.EventMirrorStopped, "The Job has finished, but worker "+w.Name+
				" has one of it, such as one that somebody restored from a backup: "+stops(w.Mirror)))
		}
	}
	if s.hasFinalizer() {
		plan.Actions = append(plan.Actions, RemoveFinalizer{})
	}
	plan.sideBySide(inWorkers)
	return plan
}

// awaitConnection has the plan wait for an unreachable worker: until it is connected, or lost.
func (p *Plan) awaitConnection(s *Snapshot, w *Worker, what string) {
	p.AwaitsCapacity = true
	p.awaitRelease(s, w)
	p.After = wake.Soonest(p.After, wake.Until(w.Loss.At, s.Now))
	if !w.Connecting {
		p.Reports = append(p.Reports, warn(v1alpha1.EventLost, "Waiting for worker "+w.Name+" "+what+": "+w.Trouble))
	}
}
