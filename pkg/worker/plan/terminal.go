package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// verdict is why the Job must end. It is first recorded as an interim condition (FailureTarget or
// SuccessCriteriaMet), and turns into the terminal one when every Pod has ended and been counted
// (KEP-3998, KEP-4368).
type verdict struct {
	interim         batchv1.JobConditionType
	reason, message string
}

func (v *verdict) failed() bool { return v.interim == batchv1.JobFailureTarget }

func (v *verdict) terminal() batchv1.JobConditionType {
	if v.failed() {
		return batchv1.JobFailed
	}
	return batchv1.JobComplete
}

func failure(reason, message string) *verdict {
	return &verdict{batchv1.JobFailureTarget, reason, message}
}

func success(reason, message string) *verdict {
	return &verdict{batchv1.JobSuccessCriteriaMet, reason, message}
}

// verdictRules are asked in order, the first answer wins: what an earlier sync has recorded stands,
// and failures go before successes.
var verdictRules = []func(*facts) *verdict{
	recordedSuccess,
	recordedFailure,
	failedByPolicy,
	backoffLimitExceeded,
	deadlineExceeded,
	tooManyFailedIndexes,
	allIndexesSettled,
	succeededByPolicy,
}

func (f *facts) judge() *verdict {
	for _, ask := range verdictRules {
		if v := ask(f); v != nil {
			return v
		}
	}
	return nil
}

func recordedSuccess(f *facts) *verdict {
	if c := trueCondition(f.job.Status.Conditions, batchv1.JobSuccessCriteriaMet); c != nil {
		return success(c.Reason, c.Message)
	}
	return nil
}

func recordedFailure(f *facts) *verdict {
	if c := trueCondition(f.job.Status.Conditions, batchv1.JobFailureTarget); c != nil {
		return failure(c.Reason, c.Message)
	}
	return nil
}

func failedByPolicy(f *facts) *verdict {
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

func backoffLimitExceeded(f *facts) *verdict {
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

func deadlineExceeded(f *facts) *verdict {
	if at := f.deadline(); !at.IsZero() && !f.now.Before(at) {
		return failure(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	return nil
}

func tooManyFailedIndexes(f *facts) *verdict {
	limit := f.job.Spec.MaxFailedIndexes
	if perIndex(f.job) && limit != nil && f.indexes.failed.Len() > int(*limit) {
		return failure(batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes")
	}
	return nil
}

func allIndexesSettled(f *facts) *verdict {
	failed := f.indexes.failed.Len()
	if perIndex(f.job) && failed > 0 && failed+f.indexes.succeeded.Len() >= f.completions {
		return failure(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
	}
	return nil
}

func succeededByPolicy(f *facts) *verdict {
	if !f.indexed {
		return nil
	}
	if message, met := matchSuccessPolicy(f.job.Spec.SuccessPolicy, f.completions, f.indexes.succeeded); met {
		return success(batchv1.JobReasonSuccessPolicy, message)
	}
	return nil
}

// completed is the verdict on a Job none of whose Pods is active: it has all its completions, or,
// as a work queue, one Pod said that the work is done.
func (f *facts) completed(active int32) *verdict {
	if active > 0 || f.succeeded < ptr.Deref(f.job.Spec.Completions, 1) || f.queueInterrupted() {
		return nil
	}
	return success(batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
}
