package shards

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
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
	placed, free, taken := sets.New(p.Workers()...), p.Unassigned(hub), intervals.Parts{p.indexes()}
	var of []*batchv1.Job
	p.Shards = slices.Clone(p.Shards)
	for _, m := range mirrors {
		s, is := adoptable(hub, m)
		if !is || placed.Has(m.Worker) || taken.Meet(s.Indexes) || s.Number > free.Number {
			continue
		}
		placed.Insert(m.Worker)
		taken.Add(s.Indexes)
		free.Number -= s.Number
		p.Shards, of, adopted = append(p.Shards, s), append(of, m.Job), append(adopted, m.Worker)
	}
	credit(p.Shards[len(p.Shards)-len(of):], of, taken.LeftOf(free.Indexes))
	slices.SortFunc(p.Shards, func(a, b Shard) int { return cmp.Compare(a.Worker, b.Worker) })
	return p.within(hub), adopted
}

// adoptable returns the shard of a mirror.
func adoptable(hub *batchv1.Job, m Mirror) (s Shard, is bool) {
	amount, err := ParseAmount(m.Job.Annotations[v1alpha1.AnnotationIndexes], Indexed(hub))
	part := max(min(ptr.Deref(m.Job.Spec.Parallelism, 1), ptr.Deref(hub.Spec.Parallelism, 1)), 0)
	s = Shard{Worker: m.Worker, Amount: amount, State: State{Parallelism: part}}
	if err != nil || amount.Len() == 0 || s.IsOutdated(hub, m.Job) {
		return s, false
	}
	if IsFollowing(m.Job) {
		held, _ := s.Held(m.Job)
		s.Indexes, s.Returning = held, held.Minus(s.Indexes).String()
	}
	return s, true
}

// credit adds to shards what their mirrors have settled of the indexes that no shard has: a shard
// had them before, as far as the hub knew, and has been given others since.
func credit(to []Shard, mirrors []*batchv1.Job, free intervals.Set) {
	var credited intervals.Parts
	for i, m := range mirrors {
		if IsFollowing(m) { // in others, all that isn't in the shard counts as completed
			settled := credited.LeftOf(SettledIn(m).Intersect(free))
			to[i].Indexes = to[i].Indexes.Union(settled)
			credited.Add(settled)
		}
	}
}
