package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/mirror/outcome"
)

// track lists the Pods that have ended as uncounted, and picks those to untrack once that is
// written. So each Pod goes through three steps: it's listed, untracked, counted. The list has room
// for so many: those that are on it already need none, however often their finalizer stays.
func (f *facts) track(r *Record) {
	pods := filter(f.pods, func(p *pod) bool { return p.tracked })
	for _, p := range pods {
		r.tracked.Insert(p.UID)
	}
	countUntracked(&f.next, r.tracked)
	listed := f.next.UncountedTerminatedPods
	newIndexes := 0
	for _, p := range pods {
		if !f.isSpent(p, r.outcome) {
			continue
		}
		full := newIndexes+len(listed.Succeeded)+len(listed.Failed) >= f.options.MaxUncountedPods
		if full && !f.listed.Has(p.UID) {
			r.More = true
			continue
		}
		r.Untrack = append(r.Untrack, p.Pod)
		newIndexes += f.list(p, r)
	}
}

// isSpent reports whether the Pod is of no more use to the Job.
func (f *facts) isSpent(p *pod, end *outcome.Outcome) bool {
	if f.job.DeletionTimestamp != nil || end != nil || p.succeeded() {
		return true
	}
	awaited := f.indexes.awaiting[p.index]
	return f.countsAsFailed(p) && (awaited == nil || awaited.UID != p.UID)
}

// list notes the Pod's end in the status. It returns 1 for a success that is noted by its index
// alone: recording an index twice does no harm, so no UID has to be kept for it.
func (f *facts) list(p *pod, r *Record) (newIndex int) {
	listed := f.next.UncountedTerminatedPods
	// A Pod is listed once, as what it was first seen to be: the API server refuses a UID in both
	// lists (kubernetes#125410).
	known := f.listed.Has(p.UID)
	switch {
	case p.succeeded() && f.indexed:
		if f.valid(p) && !f.indexes.recorded.Has(p.index) && !known {
			return 1
		}
	case p.succeeded():
		if !known {
			listed.Succeeded = append(listed.Succeeded, p.UID)
		}
	case (f.countsAsFailed(p) || r.outcome != nil && r.outcome.Failed()) && !known && f.valid(p):
		is := f.ruling(p)
		if is.action != "" {
			r.Actions[is.action]++
		}
		if is.counts() {
			listed.Failed = append(listed.Failed, p.UID)
		}
	}
	return 0
}

// countUntracked turns listed UIDs whose Pods are no longer tracked into counts.
func countUntracked(status *batchv1.JobStatus, tracked sets.Set[types.UID]) {
	listed := status.UncountedTerminatedPods
	kept := func(uids []types.UID) []types.UID {
		return slices.DeleteFunc(slices.Clone(uids), func(uid types.UID) bool { return !tracked.Has(uid) })
	}
	succeeded, failed := kept(listed.Succeeded), kept(listed.Failed)
	status.Succeeded += int32(len(listed.Succeeded) - len(succeeded))
	status.Failed += int32(len(listed.Failed) - len(failed))
	listed.Succeeded, listed.Failed = succeeded, failed
}
