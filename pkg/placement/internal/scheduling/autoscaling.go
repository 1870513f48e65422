package scheduling

import (
	"cmp"
	"math"
	"slices"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const autoscaler = "Autoscaler"

// Reasons of a worker whose autoscaler can add nodes for the Job: it would if it had fewer, or it
// adds none for a while, because that has failed.
var (
	atLimits = Reason{autoscaler, "the autoscaler's limits are reached", ""}
	paused   = Reason{autoscaler, "the autoscaler adds no nodes for now", ""}
)

// scalingUp is the answer for a Job that doesn't have all its Pods fit on the nodes that there are.
func (a *admitted) scalingUp(s *Snapshot, wanted int64, there Answer) Answer {
	with := a.judge(s.with(s.Autoscaling.Nodes(a.shape, wanted)), wanted)
	switch {
	case with.Verdict == FitsNow && with.Now > there.Now:
		with.Verdict, with.AfterScaleUp, with.Now = FitsAfterScaleUp, with.Now, there.Now
		with.Looked, with.Reasons = there.Looked, there.Reasons
		return with
	case there.Verdict == FitsNow:
		return there
	case there.Verdict == FitsLater:
		there.Idle = max(there.Idle, with.Idle)
		return there
	case with.Verdict == FitsLater:
		return with
	}
	nodes := s.Autoscaling.Empty().Nodes(a.shape, there.least)
	if len(nodes) == 0 {
		nodes = s.Autoscaling.All() // one of each says why none suits
	}
	empty := s.with(nodes)
	refused := a.neverFits(view{empty, Ever, a.work}, there.least)
	if refused == nil {
		why := atLimits
		if s.Autoscaling.IsPaused(a.shape) {
			why = paused
		}
		there.Verdict = FitsLater
		there.Reasons = append(there.Reasons, Count{Reason: why})
		return there
	}
	there.Looked, there.Reasons = empty, refused.counts()
	return there
}

// ScaledUp is the Snapshot with all nodes that may be added for a Job.
func (s *Snapshot) ScaledUp(j *Job) *Snapshot {
	if s.Autoscaling == nil {
		return s
	}
	return s.with(s.Autoscaling.Nodes(j.shape, math.MaxInt64))
}

// with is the Snapshot with more nodes, on which nothing runs.
func (s *Snapshot) with(nodes []*capacity.Node) *Snapshot {
	if len(nodes) == 0 {
		return s
	}
	with := s.copyOf()
	for _, n := range nodes {
		with.Nodes = append(with.Nodes, &Node{n, noPods})
	}
	slices.SortFunc(with.Nodes, func(a, b *Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	with.topologies = topologiesOf(with.objects())
	with.findGuards()
	return with
}
