package plan

import (
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// statusRules are what the API server and we demand of a Job's next status.
func statusRules(old, job *batchv1.Job, elastic bool) error {
	was, is := &old.Status, &job.Status
	listed := is.UncountedTerminatedPods
	all := slices.Sorted(slices.Values(append(slices.Clone(listed.Succeeded), listed.Failed...)))
	terminal := Finished(job)
	mayFall := IsIndexed(job) && ptr.Equal(job.Spec.Parallelism, job.Spec.Completions)
	nothingToDo := ptr.Deref(job.Spec.Suspend, false) && ptr.Equal(job.Spec.Completions, ptr.To[int32](0))
	indexes := int32(intervals.ParseLenient(is.CompletedIndexes, 1<<20).Len())
	rules := []struct {
		name   string
		broken bool
	}{
		{"a finished Job never changes", Finished(old) != nil && !equality.Semantic.DeepEqual(was, is)},
		{"ready is not above active", ptr.Deref(is.Ready, 0) > is.Active},
		{"nothing is negative", is.Active < 0 || *is.Ready < 0 || *is.Terminating < 0 || is.Succeeded < 0 || is.Failed < 0},
		{"a UID is listed once", len(slices.Compact(slices.Clone(all))) != len(all)},
		{"the list is bounded", len(all) > testOptions.MaxUncountedPods},
		{"failed doesn't fall", is.Failed < was.Failed},
		{"succeeded doesn't fall", is.Succeeded < was.Succeeded && !mayFall},
		{"terminal only without active Pods", terminal != nil && is.Active+*is.Ready+*is.Terminating > 0},
		{"terminal only without uncounted Pods", terminal != nil && len(all) > 0},
		{"Failed only after FailureTarget", failedNow(job) && trueCondition(was.Conditions, batchv1.JobFailureTarget) == nil},
		{"Complete only after SuccessCriteriaMet", completeNow(job) && trueCondition(was.Conditions, batchv1.JobSuccessCriteriaMet) == nil},
		{"a finished Job has a start time", terminal != nil && is.StartTime == nil && !nothingToDo},
		{"Complete and only Complete has a completion time", completeNow(job) != (is.CompletionTime != nil)},
		{"the end isn't before the start", is.CompletionTime.Before(is.StartTime) && is.CompletionTime != nil},
		{"no success and failure at once", trueCondition(is.Conditions, batchv1.JobFailureTarget) != nil &&
			trueCondition(is.Conditions, batchv1.JobSuccessCriteriaMet) != nil},
		{"one condition of each type", repeatedCondition(is)},
		{"indexes fit the counters", IsIndexed(job) && is.Succeeded != indexes && (mayFall || is.Succeeded != was.Succeeded)},
		{"an index doesn't both succeed and fail", intervals.ParseLenient(is.CompletedIndexes, 1<<20).
			Intersect(intervals.ParseLenient(ptr.Deref(is.FailedIndexes, ""), 1<<20)).Len() > 0},
		{"no more indexes than completions", IsIndexed(job) && is.Succeeded > *job.Spec.Completions && !elastic},
		{"start time changes only by a resume", was.StartTime != nil && is.StartTime != nil && !was.StartTime.Equal(is.StartTime) &&
			findCondition(is.Conditions, batchv1.JobSuspended) == nil},
	}
	var errs []error
	for _, r := range rules {
		if r.broken {
			errs = append(errs, errors.New(r.name))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w\nwas %+v\nis  %+v", errors.Join(errs...), *was, *is)
	}
	return nil
}

func failedNow(job *batchv1.Job) bool {
	return trueCondition(job.Status.Conditions, batchv1.JobFailed) != nil
}

func completeNow(job *batchv1.Job) bool {
	return trueCondition(job.Status.Conditions, batchv1.JobComplete) != nil
}

func repeatedCondition(s *batchv1.JobStatus) bool {
	seen := map[batchv1.JobConditionType]bool{}
	for _, c := range s.Conditions {
		if seen[c.Type] {
			return true
		}
		seen[c.Type] = true
	}
	return false
}
