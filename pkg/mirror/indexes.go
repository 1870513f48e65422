package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/intervals"
)

// indexSets are the parsed indexes of a status. A fault says why one of them couldn't be read; it's
// then empty.
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
	if r.rescaled() || r.hub.Spec.Completions == nil {
		return intervals.NoLimit
	}
	return int(*r.hub.Spec.Completions)
}

// rescaled says whether the completions of the Job may have changed since it was created: only
// those of Indexed Jobs can, and any change raises the generation.
func (r *reflection) rescaled() bool { return rescaled(r.hub) }

func rescaled(hub *batchv1.Job) bool { return indexed(hub) && hub.Generation > 1 }

// shrinkable says whether succeeded and the indexes may fall: an elastic Indexed Job (KEP-3715) may
// have been scaled down.
func (r *reflection) shrinkable() bool {
	return r.rescaled() && ptr.Equal(r.hub.Spec.Completions, r.hub.Spec.Parallelism)
}

func indexes(r *reflection) {
	if !indexed(r.hub) || r.hub.Spec.Completions == nil {
		return
	}
	n := int(*r.hub.Spec.Completions)
	was := r.was.completed.Below(n)
	completed, failed := r.said.completed.Below(n), r.said.failed.Below(n)
	if FreshStart(r.mirror) {
		completed = completed.Union(was)
		failed = failed.Union(r.was.failed.Below(n)).Minus(completed)
	}
	r.said.completed, r.said.failed = completed, failed
	r.next.CompletedIndexes = completed.String()
	r.next.FailedIndexes = nil
	if r.mirror.Status.FailedIndexes != nil && r.hub.Spec.BackoffLimitPerIndex != nil {
		r.next.FailedIndexes = ptr.To(failed.String())
	}
	r.next.Succeeded = int32(completed.Len())
	if r.rescaled() && !r.shrinkable() && was.SubsetOf(completed) {
		// Scaled down, and then parallelism alone changed: the API server no longer lets succeeded
		// fall.
		r.next.Succeeded = max(r.next.Succeeded, r.hub.Status.Succeeded)
	}
}
