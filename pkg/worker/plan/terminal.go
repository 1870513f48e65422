package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/outcome"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// outcomeRules apply in order, the first match wins: what an earlier sync has recorded stands, and
// failures go before successes. That no index is left, or that enough have succeeded, ends no
// shard: the hub says so, by a recorded outcome.
var outcomeRules = []func(*facts) *outcome.Outcome{
	recorded,
	failedByPolicy,
	backoffLimitExceeded,
	deadlineExceeded,
	byIndexes,
}

func (f *facts) decideOutcome() *outcome.Outcome {
	for _, rule := range outcomeRules {
		if o := rule(f); o != nil {
			return o
		}
	}
	return nil
}

func recorded(f *facts) *outcome.Outcome {
	for _, interim := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if c := trueCondition(f.job.Status.Conditions, interim); c != nil {
			return &outcome.Outcome{Interim: interim, Reason: cut(c.Reason, text.MaxReason), Message: cut(c.Message, text.MaxMessage)}
		}
	}
	return nil
}

// cut shortens what somebody else has recorded, who may have written any text: an event repeats it.
func cut(said string, limit int) string {
	if len(said) <= limit {
		return said
	}
	return text.Clean(said, limit)
}

func failedByPolicy(f *facts) *outcome.Outcome {
	if f.job.Spec.PodFailurePolicy == nil {
		return nil
	}
	for _, p := range f.pods {
		if !f.countsAsFailed(p) {
			continue
		}
		if r := f.ruling(p); r.action == batchv1.PodFailurePolicyActionFailJob {
			return &outcome.Outcome{Interim: batchv1.JobFailureTarget, Reason: batchv1.JobReasonPodFailurePolicy, Message: r.message}
		}
	}
	return nil
}

func backoffLimitExceeded(f *facts) *outcome.Outcome {
	if f.failed > f.backoffLimit || f.restartsExceedLimit() {
		return &outcome.BackoffLimitExceeded
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

func deadlineExceeded(f *facts) *outcome.Outcome {
	if at := f.deadline(); !at.IsZero() && !f.now.Before(at) {
		return &outcome.DeadlineExceeded
	}
	return nil
}

// byIndexes is for the whole Job: of a shard's indexes only too many failures count.
func byIndexes(f *facts) *outcome.Outcome {
	if !f.indexed {
		return nil
	}
	if o, ends := outcome.OfIndexes(&f.job.Spec, f.indexes.succeeded, f.indexes.failed); ends &&
		(f.shard == nil || o.Reason == batchv1.JobReasonMaxFailedIndexesExceeded) {
		return &o
	}
	return nil
}

// completed is the outcome of a Job without active Pods: it has all its completions, or, as a work
// queue, one Pod said that the work is done.
func (f *facts) completed(active int32) *outcome.Outcome {
	if f.shard != nil || active > 0 || f.succeeded < ptr.Deref(f.job.Spec.Completions, 1) || f.queueInterrupted() {
		return nil
	}
	return &outcome.CompletionsReached
}
