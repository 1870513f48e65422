package placement

import (
	"cmp"
	"hash/fnv"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// Candidate is a cluster that passed every filter.
type Candidate struct {
	Cluster string
	// Rank is the cluster's position in Request.Among; zero without one. Lower goes first.
	Rank int
	// Preempts: Pods of a lower priority have to go. Those where none has to go first, within a rank.
	Preempts bool
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
	if c.Capacity != nil {
		share = a.freeShare(c)
	}
	return Candidate{
		Cluster:  c.Name,
		Rank:     a.rank[c.Name],
		Preempts: a.answers[c.Name] != nil && a.answers[c.Name].Preempts,
		Score:    share * int64(max(c.Weight, 1)),
		draw:     draw(string(a.Job.UID), c.Name),
	}
}

// freeShare is that of the scarcest resource, over the nodes that suit the Job, once it runs there.
func (a *ask) freeShare(c *Cluster) int64 {
	share := int64(all)
	pods := int64(0)
	if a.want > 0 {
		pods = a.answerOf(c).Needed()
	}
	for _, total := range scheduling.Totals(c.Capacity, a.job) {
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
		compareBool(a.Preempts, b.Preempts),
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
