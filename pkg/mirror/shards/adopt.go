package shards

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Adopt adds the shards of mirrors that the hub doesn't know, as they were created after the backup
// that the hub's etcd was put back to, and returns the workers of those that it added. The others
// aren't of completions that are unassigned.
//
// The mirrors may be of different times, and say what their workers please: their parts fall in
// proportion when they add up to more than the Job's parallelism.
func (p Placement) Adopt(hub *batchv1.Job, mirrors []Mirror) (next Placement, adopted []string) {
	p.Shards = slices.Clone(p.Shards)
	taken := p.indexes()
	for _, m := range mirrors {
		shard, is := p.adoptable(hub, m, taken)
		if !is {
			continue
		}
		p.Shards, taken = append(p.Shards, shard), taken.Union(shard.Indexes)
		adopted = append(adopted, m.Worker)
	}
	slices.SortFunc(p.Shards, func(a, b Shard) int { return cmp.Compare(a.Worker, b.Worker) })
	free := p.Unassigned(hub).Indexes
	for _, m := range mirrors { // when each has what is its own
		if slices.Contains(adopted, m.Worker) {
			free = free.Minus(p.credit(m, free))
		}
	}
	return p.within(hub), adopted
}

// adoptable returns the shard of a mirror. Taken are the indexes of the other shards.
func (p Placement) adoptable(hub *batchv1.Job, m Mirror, taken intervals.Set) (s Shard, is bool) {
	amount, err := ParseAmount(m.Job.Annotations[v1alpha1.AnnotationIndexes], Indexed(hub))
	part := min(ptr.Deref(m.Job.Spec.Parallelism, 1), ptr.Deref(hub.Spec.Parallelism, 1))
	s = Shard{Worker: m.Worker, Amount: amount, State: State{Parallelism: part}}
	if err != nil || amount.Len() == 0 || s.IsOutdated(hub, m.Job) {
		return s, false
	}
	if IsFollowing(m.Job) {
		held, _ := s.Held(m.Job)
		s.Indexes, s.Returning = held, held.Minus(s.Indexes).String()
	}
	_, has := p.In(m.Worker)
	return s, !has && len(s.Indexes.Intersect(taken)) == 0 && (s.Number == 0 || s.Number <= p.Unassigned(hub).Number)
}

// credit adds to a shard what its mirror has settled of the indexes that no shard has, and returns
// that: the shard had them before, as far as the hub knew, and has been given others since.
func (p Placement) credit(m Mirror, free intervals.Set) (settled intervals.Set) {
	if !IsFollowing(m.Job) { // in others, all that isn't in the shard counts as completed
		return nil
	}
	settled = SettledIn(m.Job).Intersect(free)
	for i := range p.Shards {
		if p.Shards[i].Worker == m.Worker {
			p.Shards[i].Indexes = p.Shards[i].Indexes.Union(settled)
		}
	}
	return settled
}
