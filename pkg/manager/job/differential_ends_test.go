package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/outcome"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// allowedEnds are the reasons for which a story's Job may end, told from the fates of its
// completions alone, whatever runs when.
//
// An early end is one while completions are left: backoffLimit, maxFailedIndexes, FailJob, the
// deadline, successPolicy. It is possible if the attempts that the fates have can lead to it, and
// certain if no run can settle all completions without it. The late end, with all completions
// settled, is allowed if no early one is certain. Of several allowed ends chance decides which
// comes first. When the last completion is settled, failed indexes go before successPolicy, and
// that before completions.
type allowedEnds struct {
	reasons sets.Set[string]
	// exact: only the late end is possible, and the same indexes fail in every run.
	exact bool
}

// prospects is what the attempts of all completions can lead to.
type prospects struct {
	mayFail, mustFail     intervals.Set // indexes, by their own limit
	mostExits, leastExits int           // that count as failures
	mayFailJob, failsJob  bool
}

// prospects looks at the attempts up to the one with which an index has used up its limit. An index
// whose Pods are killed starts to count anew, so it may get more of them.
func (s *jobStory) prospects() (p prospects) {
	limit := s.job.Spec.BackoffLimitPerIndex
	for i, f := range s.fates {
		failures, failed := 0, false
		for _, exit := range f.exits {
			does := s.does(exit)
			if does == batchv1.PodFailurePolicyActionIgnore {
				continue
			}
			p.mostExits++
			p.mayFailJob = p.mayFailJob || does == batchv1.PodFailurePolicyActionFailJob
			if failed {
				continue
			}
			failures++
			p.leastExits++
			p.failsJob = p.failsJob || does == batchv1.PodFailurePolicyActionFailJob
			if limit == nil || failures <= int(*limit) && does != batchv1.PodFailurePolicyActionFailIndex {
				continue
			}
			failed = true
			p.mayFail = p.mayFail.Union(intervals.Of(i))
			if !s.mayKill() || does == batchv1.PodFailurePolicyActionFailIndex {
				p.mustFail = p.mustFail.Union(intervals.Of(i))
			}
			if !s.mayKill() {
				break
			}
		}
	}
	return p
}

// mayKill reports whether Pods are deleted before the Job ends.
func (s *jobStory) mayKill() bool { return len(s.edits) > 0 }

func (s *jobStory) allowedEnds() allowedEnds {
	spec, p := &s.job.Spec, s.prospects()
	all := intervals.Range(0, len(s.fates))
	if s.endless >= 0 {
		all = all.Minus(intervals.Of(s.endless))
	}
	maxFailed := int(ptr.Deref(spec.MaxFailedIndexes, 1<<31-1))
	ends, certain := allowedEnds{reasons: sets.New[string]()}, false
	early := func(reason string, possible, is bool) {
		if possible {
			ends.reasons.Insert(reason)
			certain = certain || is
		}
	}
	early(batchv1.JobReasonBackoffLimitExceeded, p.mostExits > int(*spec.BackoffLimit), p.leastExits > int(*spec.BackoffLimit))
	early(batchv1.JobReasonPodFailurePolicy, p.mayFailJob, p.failsJob)
	early(batchv1.JobReasonMaxFailedIndexesExceeded, p.mayFail.Len() > maxFailed, p.mustFail.Len() > maxFailed)
	early(batchv1.JobReasonDeadlineExceeded, spec.ActiveDeadlineSeconds != nil, s.endless >= 0 && !p.mayFail.Has(s.endless))
	early(batchv1.JobReasonSuccessPolicy, s.meetsPolicy(all.Minus(p.mustFail)), false)
	ends.exact = ends.reasons.Len() == 0 && (spec.BackoffLimitPerIndex == nil || !s.mayKill())
	if !certain && len(p.mayFail) > 0 {
		ends.reasons.Insert(batchv1.JobReasonFailedIndexes)
	}
	if !certain && len(p.mustFail) == 0 && !s.meetsPolicy(all) {
		ends.reasons.Insert(batchv1.JobReasonCompletionsReached)
	}
	return ends
}

func (s *jobStory) meetsPolicy(succeeded intervals.Set) bool {
	_, met := outcome.OfIndexes(&batchv1.JobSpec{Completions: s.job.Spec.Completions, SuccessPolicy: s.job.Spec.SuccessPolicy}, succeeded, nil)
	return met
}

// checkEnd holds a status against what really happened, and against the rule that it names.
func (r *oneRun) checkEnd(status *batchv1.JobStatus, ends allowedEnds) error {
	final := ending(status)
	if final == nil {
		return fmt.Errorf("no end: %+v", status.Conditions)
	}
	if !ends.reasons.Has(final.Reason) {
		return fmt.Errorf("the end %s isn't one of %v", final.Reason, sets.List(ends.reasons))
	}
	interim := shards.Ending(&batchv1.Job{Status: *status})
	if interim == nil || interim.Reason != final.Reason || interim.Message != final.Message {
		return fmt.Errorf("the end %+v was announced as %+v", final, interim)
	}
	failed := intervals.ParseLenient(ptr.Deref(status.FailedIndexes, ""), len(r.held))
	completed := intervals.ParseLenient(status.CompletedIndexes, len(r.held))
	switch {
	case int(status.Succeeded) != r.succeeded.Len():
		return fmt.Errorf("succeeded is %d, it should be %d", status.Succeeded, r.succeeded.Len())
	case shards.Indexed(r.story.job) && completed.String() != r.succeeded.String():
		return fmt.Errorf("%s are completed, it should be %s", completed, r.succeeded)
	case failed.String() != r.failed.String():
		return fmt.Errorf("%s have failed, it should be %s", failed, r.failed)
	case int(status.Failed) < r.exits || int(status.Failed) > r.exits+r.kills:
		return fmt.Errorf("failed is %d, %d Pods exited, %d were killed", status.Failed, r.exits, r.kills)
	case status.Active != 0 || ptr.Deref(status.Ready, 0) != 0 || ptr.Deref(status.Terminating, 0) != 0:
		return fmt.Errorf("Pods are left in the status: %+v", status)
	case !r.holds(final.Reason):
		return fmt.Errorf("%s isn't true: %+v", final.Reason, status)
	}
	return nil
}

// holds reports whether what a reason says has happened.
func (r *oneRun) holds(reason string) bool {
	spec, settled := &r.story.job.Spec, r.succeeded.Len()+r.failed.Len() == len(r.held)
	switch reason {
	case batchv1.JobReasonBackoffLimitExceeded:
		// Pods that ran when the limit was exceeded may fail before they hear of it.
		return r.exits > int(*spec.BackoffLimit) && r.exits <= int(*spec.BackoffLimit)+r.widest
	case batchv1.JobReasonMaxFailedIndexesExceeded:
		return r.failed.Len() > int(*spec.MaxFailedIndexes)
	case batchv1.JobReasonPodFailurePolicy:
		return r.failsJob
	case batchv1.JobReasonSuccessPolicy:
		return r.story.meetsPolicy(r.succeeded)
	case batchv1.JobReasonFailedIndexes:
		return settled && len(r.failed) > 0
	case batchv1.JobReasonCompletionsReached:
		return settled && len(r.failed) == 0
	default:
		return true
	}
}

func ending(status *batchv1.JobStatus) *batchv1.JobCondition {
	for i, c := range status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == "True" {
			return &status.Conditions[i]
		}
	}
	return nil
}

// checkProgress holds that a status goes on from another one, as the API server and users expect.
func checkProgress(before, after *batchv1.Job) error {
	was, is := &before.Status, &after.Status
	completed := intervals.ParseLenient(was.CompletedIndexes, intervals.NoLimit)
	failed := intervals.ParseLenient(ptr.Deref(was.FailedIndexes, ""), intervals.NoLimit)
	completes := intervals.ParseLenient(is.CompletedIndexes, intervals.NoLimit)
	fails := intervals.ParseLenient(ptr.Deref(is.FailedIndexes, ""), intervals.NoLimit)
	switch {
	case is.Succeeded < was.Succeeded || is.Failed < was.Failed:
		return fmt.Errorf("counters fall from %+v to %+v", was, is)
	case !completed.SubsetOf(completes) || !failed.SubsetOf(fails):
		return fmt.Errorf("indexes are withdrawn from %+v to %+v", was, is)
	case len(completes.Intersect(fails)) > 0:
		return fmt.Errorf("indexes are both completed and failed: %+v", is)
	case ptr.Deref(is.Ready, 0) > is.Active:
		return fmt.Errorf("more Pods are ready than active: %+v", is)
	case mirror.Finished(before):
		return fmt.Errorf("the status of a Job that has ended changes to %+v", is)
	case was.StartTime != nil && !was.StartTime.Equal(is.StartTime) && !mirror.Suspended(after):
		return fmt.Errorf("startTime changes from %v to %v", was.StartTime, is.StartTime)
	}
	for _, c := range was.Conditions {
		ends := c.Type == batchv1.JobSuccessCriteriaMet || c.Type == batchv1.JobFailureTarget
		same := func(d batchv1.JobCondition) bool {
			return d.Type == c.Type && d.Status == c.Status && d.Reason == c.Reason
		}
		if ends && !slices.ContainsFunc(is.Conditions, same) {
			return fmt.Errorf("%s is withdrawn: %+v", c.Type, is)
		}
	}
	return nil
}
