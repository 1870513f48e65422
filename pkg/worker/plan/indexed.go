package plan

import (
	"maps"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// IsIndexed reports whether each completion of the Job has an index of its own.
func IsIndexed(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// perIndex reports whether each index has its own back-off limit (KEP-3850).
func perIndex(job *batchv1.Job) bool { return IsIndexed(job) && job.Spec.BackoffLimitPerIndex != nil }

// indexes are the completion indexes of an Indexed Job by their state.
type indexes struct {
	recorded  intervals.Set // succeeded according to the status
	succeeded intervals.Set // recorded, and those of Pods that have succeeded since
	failed    intervals.Set // with backoffLimitPerIndex only: given up
	active    intervals.Set // some Pod runs
	// awaiting holds, with backoffLimitPerIndex, the last failed Pod of each index that is to be
	// tried again. It stays tracked until its replacement is there, because the index's count of
	// failures lives on its Pods.
	awaiting map[int]*pod
}

func (f *facts) sortIndexes() indexes {
	status := &f.job.Status
	x := indexes{recorded: intervals.ParseLenient(status.CompletedIndexes, f.completions), active: indexesOf(f.active)}
	// An index is settled once: the API server refuses one that has both succeeded and failed. What
	// is recorded stands, then a success wins.
	if perIndex(f.job) {
		x.failed = intervals.ParseLenient(ptr.Deref(status.FailedIndexes, ""), f.completions)
	}
	x.succeeded = x.recorded.Union(f.indexesWhere(func(p *pod) bool { return p.succeeded() && !x.failed.Has(p.index) }))
	if !perIndex(f.job) {
		return x
	}
	x.failed = x.failed.Union(f.indexesWhere(func(p *pod) bool { return f.failsIndex(p) && !x.succeeded.Has(p.index) }))
	x.awaiting = f.awaitingReplacement(x)
	return x
}

// indexesWhere are the indexes of the tracked Pods for which is returns true.
func (f *facts) indexesWhere(is func(*pod) bool) intervals.Set {
	return indexesOf(filter(f.pods, func(p *pod) bool { return p.tracked && f.valid(p) && is(p) }))
}

// failsIndex reports whether this Pod's failure is the last one its index had.
func (f *facts) failsIndex(p *pod) bool {
	if !f.countsAsFailed(p) {
		return false
	}
	r := f.ruling(p)
	if r.action == batchv1.PodFailurePolicyActionFailIndex {
		return true
	}
	return r.counts() && countedFailures(p.Pod) >= int(*f.job.Spec.BackoffLimitPerIndex)
}

func (f *facts) awaitingReplacement(x indexes) map[int]*pod {
	settled := x.succeeded.Union(x.failed).Union(x.active)
	awaiting := map[int]*pod{}
	for _, p := range f.pods {
		if !p.tracked || !f.valid(p) || !f.countsAsFailed(p) || settled.Has(p.index) {
			continue
		}
		if last := awaiting[p.index]; last == nil || failedLater(p, last) {
			awaiting[p.index] = p
		}
	}
	return awaiting
}

// awaited are the indexes of awaiting.
func (x indexes) awaited() intervals.Set {
	return intervals.Of(slices.Collect(maps.Keys(x.awaiting))...)
}

func failedLater(p, than *pod) bool {
	return allFailures(p.Pod) >= allFailures(than.Pod) && !endTime(p.Pod).Before(endTime(than.Pod))
}

// pendingIndexes are up to count of the lowest indexes that need a Pod.
func (f *facts) pendingIndexes(count int) []int {
	taken := f.indexes.succeeded.Union(f.indexes.failed).Union(f.indexes.active)
	if f.replacesOnlyFailed {
		taken = taken.Union(indexesOf(filter(f.pods, (*pod).terminating)))
	}
	return f.mayStart().Minus(taken).First(count)
}

// countedFailures are those of the index before this Pod that count towards backoffLimitPerIndex;
// allFailures are the ignored ones, too.
func countedFailures(p *corev1.Pod) int { return countOf(p, batchv1.JobIndexFailureCountAnnotation) }

func allFailures(p *corev1.Pod) int {
	return countedFailures(p) + countOf(p, batchv1.JobIndexIgnoredFailureCountAnnotation)
}

// countOf reads an annotation anybody may have edited: what isn't a count is 0.
func countOf(p *corev1.Pod, annotation string) int {
	n, err := strconv.Atoi(p.Annotations[annotation])
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}
