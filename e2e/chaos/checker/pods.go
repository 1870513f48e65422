package checker

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// observeMirror takes in a Job of a worker.
func (c *Checker) observeMirror(r *record, e Event) {
	c.observeSwept(r, e)
	if e.Gone {
		r.seen[e.Job.UID] = e.Job
		r.noteChange(e.At, e.Where, "mirror", "is gone")
		return
	}
	if _, known := r.leaving[e.Job.UID]; !known && e.Job.DeletionTimestamp != nil {
		r.leaving[e.Job.UID] = e.At
	}
	if r.seen[e.Job.UID] == nil {
		r.silence.progresses(e.At)
	}
	if was := r.seen[e.Job.UID]; mirror.Suspended(e.Job) || was != nil && mirror.Suspended(was) {
		r.suspended[e.Job.UID] = e.At
	}
	r.seen[e.Job.UID] = e.Job
	if of := types.UID(e.Job.Annotations[v1alpha1.AnnotationHubUID]); of != "" || r.mirrors[e.Job.UID] == "" {
		r.mirrors[e.Job.UID] = of // others may remove it from the mirror
	}
	r.noteChange(e.At, e.Where, "mirror", describeJob(e.Job))
}

// observePod takes in a Pod of a Job, and asks whether it runs in two places, or in vain.
func (c *Checker) observePod(r *record, e Event) []Question {
	p, fresh := r.pod(e)
	p.observeTimes(e)
	succeeds := !e.Gone && e.Pod.Status.Phase == corev1.PodSucceeded
	r.observePhase(p, e, succeeds)
	c.observePlucked(r, p, e)
	r.noteChange(e.At, e.Where, "Pod "+p.name, describePod(e, p))
	givenUp := p.stopping || !p.ended && len(e.Pod.Finalizers) == 0
	if givenUp && r.ended == nil {
		r.interrupted = true
	}
	if succeeds && !p.ended {
		p.ended, p.succeeded, p.halted, p.doneAt = true, !givenUp, r.isSuspended(p), e.At
		c.checkRerun(r, p, e.At)
	}
	if e.Gone && (r.hasCrossed(p) || c.isOverslept(r, p, e.At)) {
		p.succeeded = false // it's given up, as above
	}
	var questions []Question
	if fresh && !succeeds && r.knownComplete(p) {
		questions = append(questions, Question{Rule: Again, Job: r.story.Name, Pods: []PodRef{p.ref()}})
	}
	if p.running {
		questions = append(questions, r.suspects(p)...)
		questions = append(questions, c.strays(r, p)...)
	}
	return questions
}

// observePlucked takes in that a Pod is being deleted, or gone: perhaps by a janitor.
func (c *Checker) observePlucked(r *record, p *pod, e Event) {
	r.plucked = r.plucked || (p.stopping || e.Gone) && c.isAt(schedule.DeletePods, e.Where, e.At)
}

// observePhase takes in whether the Pod runs.
func (r *record) observePhase(p *pod, e Event, succeeds bool) {
	running, ready := p.running, p.ready
	p.phase, p.gone = e.Pod.Status.Phase, e.Gone
	p.running = !e.Gone && e.Pod.Status.Phase == corev1.PodRunning
	p.ready = p.running && isReady(e.Pod)
	p.stopping = e.Pod.DeletionTimestamp != nil
	if p.running != running || p.ready != ready || succeeds && !p.ended {
		r.silence.progresses(e.At)
	}
}

// hasCrossed: the Pod's end crossed its deletion, for a suspension or as surplus.
func (r *record) hasCrossed(p *pod) bool { return p.halted && !r.isCounted(p) || r.isSurplus(p) }

// isOverslept: the Pod's Job controller stood still when the Pod succeeded, and found its mirror
// suspended when it went on: it deleted the Pod as one that runs. The mirror may have been resumed
// before the Pod was gone.
func (c *Checker) isOverslept(r *record, p *pod, at time.Duration) bool {
	suspended, was := r.suspended[p.owner]
	return p.succeeded && was && suspended >= p.doneAt && !r.isCounted(p) && c.find(p.where, p.doneAt, at, freezesJobController) != ""
}

// isSuspended: the Pod's mirror is.
func (r *record) isSuspended(p *pod) bool {
	m := r.seen[p.owner]
	return m != nil && mirror.Suspended(m)
}

// isSurplus: the Pod is gone from a mirror that goes on with lower parallelism. Its Job controller
// deletes no Pod that it has counted before the Job's end.
func (r *record) isSurplus(p *pod) bool {
	m := r.seen[p.owner]
	if !r.scaled || m == nil || m.DeletionTimestamp != nil {
		return false
	}
	condition, _ := story.Outcome(m)
	return condition == ""
}

// isCounted: the Pod's index is complete, its mirror says; without indexes that can't be known.
func (r *record) isCounted(p *pod) bool {
	m := r.seen[p.owner]
	return p.index < 0 || m != nil && covers(m.Status.CompletedIndexes, strconv.Itoa(p.index))
}

// knownComplete: the hub knows that the Pod's index is complete, so that it shouldn't have been
// created.
func (r *record) knownComplete(p *pod) bool {
	return p.index >= 0 && r.hub != nil && r.mirrors[p.owner] == r.hub.UID && !r.story.StartsOver() &&
		covers(r.hub.Status.CompletedIndexes, strconv.Itoa(p.index))
}

// checkRerun looks for another Pod of the same Job and index that succeeded, too.
func (c *Checker) checkRerun(r *record, p *pod, at time.Duration) {
	if p.index < 0 || !p.succeeded || r.story.StartsOver() {
		return
	}
	for _, other := range r.pods {
		if other == p || !other.succeeded || other.index != p.index || !r.sameJob(p, other) {
			continue
		}
		if !c.workers[p.where].Fenced && (p.twin == other || other.twin == p) {
			c.figures.Twins++
			r.twins++
			r.note(at, "checker", fmt.Sprintf("index %d has completed in two Pods at once: Kubernetes' own Job controller had created both", p.index))
			continue
		}
		excuse := c.excuseOfRerun(r, other, p)
		if excuse == "" {
			c.violate(at, Again, r, "index %d completes in Pod %s of %s, after Pod %s of %s", p.index, p.name, p.where, other.name, other.where)
			continue
		}
		c.figures.Reruns++
		r.note(at, "checker", fmt.Sprintf("index %d has completed twice: %s", p.index, excuse))
	}
}

// sameJob says whether two Pods are of one hub Job, and not of two that had one name after another.
func (r *record) sameJob(p, q *pod) bool {
	return p.owner == q.owner || r.mirrors[p.owner] != "" && r.mirrors[p.owner] == r.mirrors[q.owner]
}

// excuseOfRerun says why an index that had completed in one mirror may complete in another: its
// worker was out of touch when the Job was moved from it, and the hub didn't know. The other mirror
// may be in the same worker, if the Job came back.
func (c *Checker) excuseOfRerun(r *record, first, second *pod) string {
	if first.owner == second.owner {
		return c.excuseOfRestored(r, first, second)
	}
	if excuse := r.excuseOfSwept(first); excuse != "" {
		return excuse
	}
	if excuse := c.excuseOfRestored(r, first, second); excuse != "" {
		return excuse
	}
	for _, m := range r.moves {
		if !m.tookAway(first) && !m.tookAway(second) {
			continue
		}
		if excuse := c.outOfTouch(m.from, m.at); excuse != "" {
			return excuse
		}
	}
	return ""
}
