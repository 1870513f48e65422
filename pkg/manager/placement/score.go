package placement

import (
	"cmp"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Candidate is a cluster that passed every filter.
type Candidate struct {
	Cluster string
	// Rank is the cluster's position in Request.Among; zero without one. Lower goes first.
	Rank int
	// Score is the share of the cluster that stays free with the Job in it, in millionths, times
	// the cluster's weight. Higher goes first, within a rank.
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
		share = a.freeShare(a.roomIn(c))
	}
	return Candidate{
		Cluster: c.Name,
		Rank:    a.rank[c.Name],
		Score:   share * int64(max(c.Weight, 1)),
		draw:    draw(string(a.Job.UID), c.Name),
	}
}

// scored are the resources whose free share counts: what the Job asks for, and always the number of
// Pods, CPU and memory, for Jobs that ask for little.
func (s *Shape) scored() []corev1.ResourceName {
	names := []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory}
	for _, name := range s.requests() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// freeShare is that of the scarcest resource, over the nodes that suit the Job, once it runs there.
func (a *ask) freeShare(r *room) int64 {
	share := int64(all)
	pods := min(r.need(a.want), a.want)
	for i, name := range a.shape.scored() {
		if r.allocatable[i] <= 0 {
			continue
		}
		free := r.free[i] - float64(pods)*float64(a.shape.unit.Get(name))
		share = min(share, int64(free/r.allocatable[i]*all))
	}
	return max(share, 0)
}

// order puts the best first. It is total for clusters of different names, so that the order of
// input doesn't matter.
func order(a, b Candidate) int {
	return cmp.Or(
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.draw, a.draw),
		cmp.Compare(a.Cluster, b.Cluster),
	)
}

func draw(job, cluster string) uint64 {
	h := fnv.New64a()
	// A hash's Write never fails.
	_, _ = h.Write([]byte(job + "/" + cluster))
	return h.Sum64()
}
