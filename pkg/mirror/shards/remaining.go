package shards

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// settledIndexes are the indexes that have completed or failed by the hub Job's status.
func settledIndexes(job *batchv1.Job) intervals.Set {
	return intervals.Set.Union(settledBelow(job, completions(job)))
}

// SettledIn are the indexes that have completed or failed by a mirror's status, in its shard or
// not.
func SettledIn(m *batchv1.Job) intervals.Set {
	return intervals.Set.Union(settledBelow(m, intervals.NoLimit))
}

func settledBelow(job *batchv1.Job, limit int) (completed, failed intervals.Set) {
	return intervals.ParseLenient(job.Status.CompletedIndexes, limit),
		intervals.ParseLenient(ptr.Deref(job.Status.FailedIndexes, ""), limit)
}

func completions(job *batchv1.Job) int { return int(ptr.Deref(job.Spec.Completions, 0)) }

// Remaining is what a shard still has to do, by the hub Job's status.
func Remaining(job *batchv1.Job, shard Shard) Amount {
	if Indexed(job) {
		completed, failed := settledBelow(job, completions(job))
		return Amount{Indexes: shard.Indexes.Below(completions(job)).Minus(completed).Minus(failed)}
	}
	return Amount{Number: max(shard.Number-int(shard.Succeeded), 0)}
}

// Unassigned is what the Job still has to do and no shard has.
func (p Placement) Unassigned(job *batchv1.Job) Amount {
	return p.unassigned(job, intervals.Range(0, completions(job)).Minus(settledIndexes(job)))
}

func (p Placement) unassigned(job *batchv1.Job, open intervals.Set) Amount {
	if Indexed(job) {
		return Amount{Indexes: open.Minus(p.indexes())}
	}
	free := completions(job) - int(p.Settled.Succeeded)
	for _, s := range p.Shards {
		free -= s.Number
	}
	return Amount{Number: max(free, 0)}
}

// indexes are those in any shard.
func (p Placement) indexes() intervals.Set {
	all := make([]intervals.Set, 0, len(p.Shards))
	for _, s := range p.Shards {
		all = append(all, s.Indexes)
	}
	return intervals.UnionOf(all...)
}
