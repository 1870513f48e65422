package line

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// setNeeds takes over in which workers there may be room for a Job, and how many Pods must fit
// there. What that takes counts as tries.
func (l *Line) setNeeds(w *entry, decision placement.Decision) {
	w.Needs = waiting.Needs{}
	left := maxNeedWork
	w.fitsNowhere = len(decision.Candidates) == 0 && !slices.ContainsFunc(decision.Rejections, func(r placement.Rejection) bool { return r.Reason.Passing() })
	for i := range decision.Candidates {
		c, need := &decision.Candidates[i], waiting.Need{}
		if v, ok := l.workers.Worker(c.Cluster); ok && w.fitsByShape(v) {
			need.Pods = c.Needed
		}
		w.Needs.Set(c.Cluster, need)
	}
	for i := range decision.Rejections {
		switch r := &decision.Rejections[i]; r.Reason {
		case placement.Insufficient, placement.Reserved, placement.NeverFits:
			w.Needs.Set(r.Cluster, l.needIn(r, w, &left))
		case placement.StockedOut: // until it's to be tried again
			w.Needs.Set(r.Cluster, waiting.Need{Lacks: waiting.Other})
		}
	}
	w.tries += maxInVain * (maxNeedWork - max(left, 0)) / maxNeedWork
}

// maxNeedWork bounds the comparisons of a Job with the nodes of all workers by which it's found out
// under the lock what it lacks, or whether what it needs is still there: some 15 ms.
const maxNeedWork = 500_000

// needIn is what a Job lacks in a worker that rejects it.
func (l *Line) needIn(r *placement.Rejection, w *entry, left *int) waiting.Need {
	v, ok := l.workers.Worker(r.Cluster)
	helpedBy := r.HelpedBy
	if helpedBy != 0 && len(w.Shape.Unit().Others) > 0 {
		helpedBy |= placement.DevicesChange // some may stand for what it requests
	}
	if !ok || w.large || r.IgnoresRoom() {
		return waiting.Need{Lacks: waiting.Other, HelpedBy: helpedBy}
	}
	if w.forGroup { // its Pods are estimated only
		return waiting.Need{}
	}
	need := max(r.Needed, 1)
	switch fits := mayFitIdle(v, w.Shape, need, left); {
	case fits && r.Reason != placement.NeverFits:
		return waiting.Need{Pods: r.Needed, HelpedBy: helpedBy}
	case !fits && w.fitsByShape(v):
		return waiting.Need{Lacks: waiting.Nodes, Pods: need, HelpedBy: helpedBy}
	default:
		return waiting.Need{Lacks: waiting.Other, HelpedBy: helpedBy}
	}
}

// fitsByShape reports whether a Job's Pods fit in a worker only where they do by their Shape: there
// is neither a RuntimeClass nor preemption, and no device can stand for what they request, now or
// when a driver publishes some.
func (w *entry) fitsByShape(v Worker) bool {
	free := freeIn(v, types.NamespacedName{}, placement.Reads{})
	return !w.large && !w.altered && free != nil && !free.CantJudge && !free.Preemption && len(w.Shape.Unit().Others) == 0
}

// mayFitIdle reports whether Pods fit in an idle worker, as far as the comparisons that are left
// tell.
func mayFitIdle(v Worker, shape *placement.Shape, pods int64, left *int) bool {
	idle := func(node *placement.Node) *placement.Resources { return &node.Idle }
	return findRoom(v, nodesOf(v, types.NamespacedName{}), shape, idle, pods, left) == pods
}

// findRoom is for how many of some Pods of a Shape there is room in a worker, by what each of its
// nodes has, and those have that may be added. Once the comparisons that are left are used up,
// there is room for all.
func findRoom(
	v Worker, nodes []*placement.Node, shape *placement.Shape, has func(*placement.Node) *placement.Resources, pods int64, left *int,
) int64 {
	without := pods
	compare := func(nodes []*placement.Node) {
		for i := 0; i < len(nodes) && without > 0 && *left > 0; i++ {
			*left -= shape.WorkOn(nodes[i].Object)
			without -= shape.Slots(nodes[i].Object, has(nodes[i]))
		}
	}
	if compare(nodes); without > 0 && *left > 0 {
		madeUp := added(v, shape)
		*left -= len(madeUp) * waiting.LooksPerAdded
		compare(madeUp)
	}
	if *left <= 0 {
		return pods
	}
	return pods - max(without, 0)
}
