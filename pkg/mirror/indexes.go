package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// indexSets are the parsed indexes of a status. A set that can't be read is empty, and its fault is
// the reason.
type indexSets struct {
	completed, failed           intervals.Set
	completedFault, failedFault string
}

func readIndexes(s *batchv1.JobStatus, limit int) indexSets {
	var sets indexSets
	var err error
	if sets.completed, err = intervals.ParseStrict(s.CompletedIndexes, limit); err != nil {
		sets.completedFault = "completedIndexes: " + err.Error()
	}
	if sets.failed, err = intervals.ParseStrict(ptr.Deref(s.FailedIndexes, ""), limit); err != nil {
		sets.failedFault = "failedIndexes: " + err.Error()
	}
	return sets
}

func (s indexSets) within(completions int) bool {
	all := intervals.Range(0, completions)
	return s.completed.SubsetOf(all) && s.failed.SubsetOf(all)
}

func (s indexSets) disjoint() bool { return len(s.completed.Intersect(s.failed)) == 0 }

func completions(job *batchv1.Job) int { return int(deref(job.Spec.Completions)) }

// indexLimit is above every index that the mirror can have. Its worker may not know the completions
// of a rescaled Job yet.
func (r *reflection) indexLimit() int {
	if rescaled(r.hub) || r.hub.Spec.Completions == nil {
		return intervals.NoLimit
	}
	return int(*r.hub.Spec.Completions)
}

// rescaled reports whether the completions of the Job may have changed since its creation. Only
// those of Indexed Jobs can change, and any change of the spec raises the generation.
func rescaled(hub *batchv1.Job) bool { return indexed(hub) && hub.Generation > 1 }

// shrinkable reports whether succeeded and the indexes may fall, because an elastic Indexed Job
// (KEP-3715) may have been scaled down.
func (r *reflection) shrinkable() bool {
	return rescaled(r.hub) && ptr.Equal(r.hub.Spec.Completions, r.hub.Spec.Parallelism)
}

func indexes(r *reflection) {
	if !indexed(r.hub) || r.hub.Spec.Completions == nil {
		return
	}
	n := int(*r.hub.Spec.Completions)
	was := r.was.completed.Below(n)
	completed, failed := r.reported.completed.Below(n), r.reported.failed.Below(n)
	if FreshStart(r.mirror) {
		completed = completed.Union(was)
		failed = failed.Union(r.was.failed.Below(n)).Minus(completed)
	}
	r.reported.completed, r.reported.failed = completed, failed
	r.next.CompletedIndexes = completed.String()
	r.next.FailedIndexes = nil
	if r.mirror.Status.FailedIndexes != nil && r.hub.Spec.BackoffLimitPerIndex != nil {
		r.next.FailedIndexes = ptr.To(failed.String())
	}
	r.next.Succeeded = int32(completed.Len())
	if rescaled(r.hub) && !r.shrinkable() && was.SubsetOf(completed) {
		// The Job was scaled down, and then its parallelism alone changed: the API server no longer
		// accepts a lower succeeded.
		r.next.Succeeded = max(r.next.Succeeded, r.hub.Status.Succeeded)
	}
}
