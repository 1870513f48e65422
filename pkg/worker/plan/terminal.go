package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// outcome is how and why the Job ends. It is first recorded as an interim condition (FailureTarget
// or SuccessCriteriaMet), and turns into the terminal one when every Pod has ended and been counted
// (KEP-3998, KEP-4368).
type outcome struct {
	interim         batchv1.JobConditionType
	reason, message string
}

func (o *outcome) failed() bool { return o.interim == batchv1.JobFailureTarget }

func (o *outcome) terminal() batchv1.JobConditionType {
	if o.failed() {
		return batchv1.JobFailed
	}
	return batchv1.JobComplete
}

func failure(reason, message string) *outcome {
	return &outcome{batchv1.JobFailureTarget, reason, message}
}

func success(reason, message string) *outcome {
	return &outcome{batchv1.JobSuccessCriteriaMet, reason, message}
}

// outcomeRules apply in order, the first match wins: what an earlier sync has recorded stands, and
// failures go before successes. That no index is left, or that enough have succeeded, ends no shard:
// the hub says so, by a recorded outcome.
var outcomeRules = []func(*facts) *outcome{
	recordedSuccess,
	recordedFailure,
	failedByPolicy,
	backoffLimitExceeded,
	deadlineExceeded,
	tooManyFailedIndexes,
	allIndexesSettled,
	succeededByPolicy,
}

func (f *facts) decideOutcome() *outcome {
	for _, rule := range outcomeRules {
		if o := rule(f); o != nil {
			return o
		}
	}
	return nil
}

func recordedSuccess(f *facts) *outcome {
	if c := trueCondition(f.job.Status.Conditions, batchv1.JobSuccessCriteriaMet); c != nil {
		return success(c.Reason, c.Message)
	}
	return nil
}

func recordedFailure(f *facts) *outcome {
	if c := trueCondition(f.job.Status.Conditions, batchv1.JobFailureTarget); c != nil {
		return failure(c.Reason, c.Message)
	}
	return nil
}

func failedByPolicy(f *facts) *outcome {
	if f.job.Spec.PodFailurePolicy == nil {
		return nil
	}
	for _, p := range f.pods {
		if !f.countsAsFailed(p) {
			continue
		}
		if r := rule(f.job.Spec.PodFailurePolicy, p.Pod); r.action == batchv1.PodFailurePolicyActionFailJob {
			return failure(batchv1.JobReasonPodFailurePolicy, r.message)
		}
	}
	return nil
}

func backoffLimitExceeded(f *facts) *outcome {
	if f.failed > f.backoffLimit || f.restartsExceedLimit() {
		return failure(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	}
	return nil
}

// restartsExceedLimit holds restartPolicy OnFailure, under which a failing container is restarted
// in its Pod, against the same limit.
func (f *facts) restartsExceedLimit() bool {
	if f.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	var restarts int32
	for _, p := range f.pods {
		if p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodPending {
			continue
		}
		for _, c := range p.Status.InitContainerStatuses {
			restarts += c.RestartCount
		}
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
	}
	return restarts >= max(1, f.backoffLimit)
}

func deadlineExceeded(f *facts) *outcome {
	if at := f.deadline(); !at.IsZero() && !f.now.Before(at) {
		return failure(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	return nil
}

func tooManyFailedIndexes(f *facts) *outcome {
	limit := f.job.Spec.MaxFailedIndexes
	if perIndex(f.job) && limit != nil && f.indexes.failed.Len() > int(*limit) {
		return failure(batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes")
	}
	return nil
}

func allIndexesSettled(f *facts) *outcome {
	failed := f.indexes.failed.Len()
	if f.shard == nil && perIndex(f.job) && failed > 0 && failed+f.indexes.succeeded.Len() >= f.completions {
		return failure(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
	}
	return nil
}

func succeededByPolicy(f *facts) *outcome {
	if !f.indexed || f.shard != nil {
		return nil
	}
	if message, met := matchSuccessPolicy(f.job.Spec.SuccessPolicy, f.completions, f.indexes.succeeded); met {
		return success(batchv1.JobReasonSuccessPolicy, message)
	}
	return nil
}

// completed is the outcome of a Job without active Pods: it has all its completions, or, as a work
// queue, one Pod said that the work is done.
func (f *facts) completed(active int32) *outcome {
	if f.shard != nil || active > 0 || f.succeeded < ptr.Deref(f.job.Spec.Completions, 1) || f.queueInterrupted() {
		return nil
	}
	return success(batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
}
