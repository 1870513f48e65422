package placement

import (
	"cmp"
	"hash/fnv"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Candidate is a cluster that passed every filter.
type Candidate struct {
	Cluster string
	// Rank is the cluster's position in Request.Among; zero without one. Lower goes first.
	Rank int
	// Step of the Job's preference that the cluster belongs to. Lower goes first, within a rank.
	Step int
	// ScaleUp: not all of its Pods fit before the cluster's autoscaler has added nodes. Those where
	// they do go first, within a step.
	ScaleUp bool
	// Preempts: Pods of a lower priority have to go. Those where none has to go first, of those that
	// are alike so far.
	Preempts bool
	// Needed is how many Pods must fit at once; zero if they weren't counted.
	Needed int64
	// Short is how many of the Pods that the Job would run at once the cluster never holds at once.
	// Those that hold more go first, of those that are alike so far.
	Short int64
	// Cost of one Pod for an hour. The lower goes first, of those that are alike so far.
	Cost float64
	// Score is the share of the cluster that stays free with the Job in it, in millionths, times
	// the cluster's weight. Higher goes first, of those that are alike so far.
	Score int64
	// draw decides between equals: it depends on the Job and the cluster only, and spreads Jobs.
	draw uint64
}

const (
	// whole cluster free, in millionths.
	all = 1_000_000
	// unknownShare is for clusters without known capacity: after those that are known to be at
	// least half free, before the fuller.
	unknownShare = all / 2
)

func (a *ask) candidate(c *Cluster) Candidate {
	share := int64(unknownShare)
	if c.Capacity != nil && !c.Capacity.NodesUnknown {
		share = a.freeShare(c)
	}
	step, _ := a.Preference.StepOf(c.Labels, a.Since)
	needed, short := int64(0), int64(0)
	if answer := a.answers[c.Name]; answer != nil {
		needed = answer.Needed()
		short = max(a.want-needed, 0)
	}
	return Candidate{
		Cluster:  c.Name,
		Step:     step,
		Rank:     a.rank[c.Name],
		ScaleUp:  a.scalesUp(c),
		Preempts: a.answers[c.Name] != nil && a.answers[c.Name].Preempts,
		Needed:   needed,
		Short:    short,
		Cost:     a.cost(c),
		Score:    share * int64(max(c.Weight, 1)),
		draw:     draw(string(a.Job.UID), c.Name),
	}
}

// cost of one Pod for an hour.
func (a *ask) cost(c *Cluster) float64 {
	if len(c.Cost) == 0 {
		return 0
	}
	if a.requests == nil {
		a.requests = capacity.TemplateRequests(&a.Job.Spec.Template.Spec).List()
	}
	return c.Cost.PerHour(a.requests)
}

func (a *ask) scalesUp(c *Cluster) bool {
	return a.answers[c.Name] != nil && a.answers[c.Name].Verdict == scheduling.FitsAfterScaleUp
}

// freeShare is that of the scarcest resource, over the nodes that suit the Job, once it runs there.
func (a *ask) freeShare(c *Cluster) int64 {
	share := int64(all)
	pods := int64(0)
	if a.want > 0 {
		pods = a.answerOf(c).Needed()
	}
	in := c.Capacity
	if a.scalesUp(c) {
		in = in.ScaledUp(a.job)
	}
	for _, total := range scheduling.Totals(in, a.job) {
		if total.Allocatable <= 0 {
			continue
		}
		free := total.Free - float64(pods)*float64(total.Requested)
		share = min(share, int64(free/total.Allocatable*all))
	}
	return max(share, 0)
}

// order puts the best first. It is total for clusters of different names, so that the order of
// input doesn't matter.
func order(a, b Candidate) int {
	return cmp.Or(
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.Step, b.Step),
		compareBool(a.ScaleUp, b.ScaleUp),
		compareBool(a.Preempts, b.Preempts),
		cmp.Compare(a.Short, b.Short),
		cmp.Compare(a.Cost, b.Cost),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.draw, a.draw),
		cmp.Compare(a.Cluster, b.Cluster),
	)
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func draw(job, cluster string) uint64 {
	h := fnv.New64a()
	// A hash's Write never fails.
	_, _ = h.Write([]byte(job + "/" + cluster))
	return h.Sum64()
}
