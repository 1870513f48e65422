package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/rig"
)

// The kinds whose user only submits and waits.

// complete is the end of a Job whose completions are all reached.
var complete = End{Condition: batchv1.JobComplete, Reason: batchv1.JobReasonCompletionsReached, All: true}

func single(d *draft) Story {
	return Story{Job: d.job(d.seconds(1, 6), completions(1), parallelism(1)), End: complete}
}

func parallel(d *draft) Story {
	return Story{Job: d.job(d.seconds(1, 4), completions(d.between(3, 8)), parallelism(d.between(2, 4))), End: complete}
}

func indexed(d *draft) Story {
	return Story{Job: d.job(d.seconds(1, 4), indexes(d.between(3, 8), d.between(2, 4))), End: complete}
}

// long Jobs are there when a worker is lost.
func long(d *draft) Story {
	return Story{Job: d.job(d.seconds(8, 20), indexes(d.between(4, 8), d.between(2, 3))), End: complete}
}

func waits(d *draft) Story {
	return Story{Job: d.job(d.seconds(3, 9), indexes(d.between(3, 5), 2), whenLost(wait)), End: complete}
}

func restarts(d *draft) Story {
	count := option(func(j *batchv1.Job) { indexes(4, 2)(j) })
	if d.between(0, 1) == 0 {
		count = func(j *batchv1.Job) { completions(4)(j); parallelism(2)(j) }
	}
	return Story{Job: d.job(d.seconds(3, 9), count, whenLost(restart)), End: complete}
}

// queue: Pods take their work from a queue; the first to succeed says that it's empty.
func queue(d *draft) Story {
	end := complete
	end.All, end.Succeeded = false, 1
	return Story{Job: d.job(d.seconds(1, 6), parallelism(d.between(2, 4))), End: end}
}

func expiring(d *draft) Story {
	end := complete
	end.Gone = true
	job := d.job(d.seconds(1, 4), indexes(2, 2))
	ttl := int32(3)
	job.Spec.TTLSecondsAfterFinished = &ttl
	return Story{Job: job, End: end}
}

// The kinds whose Pods fail.

func retried(d *draft) Story {
	end := complete
	end.Failed, end.FailsFirst = d.between(1, 2), true
	return Story{Job: d.job(d.seconds(1, 3), completions(2), parallelism(1), failFirst(int(end.Failed)), backoffLimit(12)), End: end}
}

func hopeless(d *draft) Story {
	return Story{
		Job: d.job(d.seconds(1, 3), exitCode(1), backoffLimit(0)),
		End: End{Condition: batchv1.JobFailed, Reason: batchv1.JobReasonBackoffLimitExceeded, Failed: 1},
	}
}

func failJob(d *draft) Story {
	return Story{
		Job: d.job(d.seconds(1, 3), exitCode(42), backoffLimit(6), onExit(batchv1.PodFailurePolicyActionFailJob, 42)),
		End: End{Condition: batchv1.JobFailed, Reason: batchv1.JobReasonPodFailurePolicy, Failed: 1},
	}
}

// disrupted Pods don't count against the backoffLimit.
func disrupted(d *draft) Story {
	job := d.job(d.seconds(1, 3), completions(1), failFirst(1), label(rig.LabelDisrupted, "true"), backoffLimit(0))
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		},
	}}}
	return Story{Job: job, End: complete}
}

func perIndex(d *draft) Story {
	bad := d.between(0, 3)
	job := d.job(d.seconds(1, 3), indexes(4, 2), label(rig.LabelFailIndexes, fmt.Sprint(bad)), backoffLimitPerIndex(0))
	return Story{Job: job, End: failedIndex(bad, 3)}
}

func failIndex(d *draft) Story {
	bad := d.between(0, 3)
	job := d.job(d.seconds(1, 3), indexes(4, 2), label(rig.LabelFailIndexes, fmt.Sprint(bad)), exitCode(42),
		onExit(batchv1.PodFailurePolicyActionFailIndex, 42), backoffLimitPerIndex(5))
	return Story{Job: job, End: failedIndex(bad, 3)}
}

func failedIndex(index, others int32) End {
	return End{
		Condition: batchv1.JobFailed, Reason: batchv1.JobReasonFailedIndexes,
		Failed: 1, FailedIndexes: fmt.Sprint(index), Succeeded: others,
	}
}

func maxFailed(d *draft) Story { return tooManyFail(d.job(d.seconds(1, 3), indexes(6, 2))) }

// tooManyFail makes every index of a Job fail, of which one may.
func tooManyFail(job *batchv1.Job) Story {
	all := make([]string, *job.Spec.Completions)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	label(rig.LabelFailIndexes, strings.Join(all, "_"))(job)
	backoffLimitPerIndex(0)(job)
	most := int32(1)
	job.Spec.MaxFailedIndexes = &most
	return Story{Job: job, End: End{
		Condition: batchv1.JobFailed, Reason: batchv1.JobReasonMaxFailedIndexesExceeded,
		Failed: 2, MoreFailed: true, AnyFailedIndexes: true,
	}}
}

func successPolicy(d *draft) Story {
	return suffices(d.job(d.seconds(1, 4), indexes(6, 2)), d.between(1, 3))
}

// suffices has a Job end with success when so many of its indexes have completed.
func suffices(job *batchv1.Job, count int32) Story {
	job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: &count}}}
	return Story{Job: job, End: End{
		Condition: batchv1.JobComplete, Reason: batchv1.JobReasonSuccessPolicy, Succeeded: count, MoreFailed: true,
	}}
}

func deadline(d *draft) Story {
	job := d.job(time.Second, completions(2), parallelism(2), runForever)
	seconds := int64(d.between(4, 8))
	job.Spec.ActiveDeadlineSeconds = &seconds
	return Story{Job: job, End: End{
		Condition: batchv1.JobFailed, Reason: batchv1.JobReasonDeadlineExceeded, MoreFailed: true,
	}}
}
