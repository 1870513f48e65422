package checker

import (
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/story"
)

// Pending are the Jobs that have not come to their end yet.
func (c *Checker) Pending() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		if !c.records[name].settled() {
			names = append(names, name)
		}
	}
	return names
}

// settled: the Job has ended, and is gone if it had to go.
func (r *record) settled() bool {
	if r.story.End.Gone {
		return r.hub == nil && (r.ended != nil || r.deletes)
	}
	return r.ended != nil || r.hub != nil && r.hub.UID == r.forsaken
}

// CheckEnds holds each Job against its story, after the last fault, when all have settled or had
// the time for it.
func (c *Checker) CheckEnds(at time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		c.checkEnd(at, c.records[name])
	}
}

func (c *Checker) checkEnd(at time.Duration, r *record) {
	if !r.settled() {
		c.violate(at, Lost, r, "has not come to its end; on the hub: %s", r.whereabouts())
		return
	}
	if r.ended == nil {
		return // deleted before its end
	}
	if wrong := r.story.End.Differences(r.ended, r.circumstances()); len(wrong) > 0 {
		c.violate(at, Ends, r, "%s", strings.Join(wrong, "; "))
	}
	c.checkCount(at, r)
	c.checkAccount(at, r)
}

// checkCount holds what the hub says against the Pods that really succeeded. In a Job that was
// moved, a Pod may have come and gone before it was seen.
func (c *Checker) checkCount(at time.Duration, r *record) {
	said := int(r.ended.Status.Succeeded)
	all, seen := r.succeededPods()
	seen -= r.twins
	switch {
	case all < said && len(r.moves) == 0:
		c.violate(at, Ends, r, "the hub says that %d Pods succeeded, but %d did", said, all)
	case seen > said && r.countsAll() && (c.lostOnTheWay(r) || c.revived(r) || r.forgets() || seen-said <= r.sweptPods()):
		if !r.indexed() { // those were counted one by one
			c.figures.Reruns += seen - said
		}
	case seen > said && r.countsAll():
		c.violate(at, Again, r, "%d Pods succeeded, for %d completions", seen, said)
	}
}

// succeededPods counts the Pods that succeeded, and those of them that hadn't been asked to stop.
func (r *record) succeededPods() (all, counting int) {
	for _, p := range r.pods {
		if !p.ended || r.mirrors[p.owner] != r.ended.UID {
			continue
		}
		all++
		if p.succeeded {
			counting++
		}
	}
	return all, counting
}

// countsAll: each Pod that succeeds is needed, and counted.
func (r *record) countsAll() bool {
	spec := r.ended.Spec
	condition, _ := story.Outcome(r.ended)
	return condition == batchv1.JobComplete && spec.SuccessPolicy == nil && !r.story.StartsOver()
}

func (r *record) indexed() bool {
	return ptr.Deref(r.ended.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// lostOnTheWay reports whether a worker was unreachable when the Job was moved from it.
func (c *Checker) lostOnTheWay(r *record) bool {
	return slices.ContainsFunc(r.moves, func(m move) bool { return c.outOfTouch(m.from, m.at) != "" })
}

func (r *record) whereabouts() string {
	if r.hub == nil {
		return "not there"
	}
	return describeJob(r.hub)
}

// Names of all Jobs that have a time line.
func (c *Checker) Names() []string { return slices.Sorted(maps.Keys(c.records)) }

// Lines are the time line of a Job.
func (c *Checker) Lines(job string) []Line {
	if r := c.records[job]; r != nil {
		return r.lines
	}
	return nil
}
