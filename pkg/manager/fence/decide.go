package fence

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

// step is what is to be done about the Lease in one worker.
type step string

const (
	// wait: nothing, now; it may be up to the manager of another hub.
	wait step = "Wait"
	// renew the Lease, or create it.
	renew step = "Renew"
	// release the Lease, if it's there.
	release step = "Release"
)

// decide says what is due for a worker.
func decide(view clusters.View, mirrors []packed.Facts) step {
	if !view.MayWrite() {
		return wait
	}
	embedded := view.Spec.JobController == v1alpha1.JobControllerEmbedded
	switch {
	// The loss clock runs: a renewal would put off the closing of the fence, but nothing puts off
	// the moving of the Jobs. Or the mirrors aren't known.
	case view.State != clusters.Ready && (view.State != clusters.Connecting || !view.Since.IsZero()):
		return wait
	case embedded && !view.Removing:
		return renew
	case view.State != clusters.Ready:
		return wait
	// The mirrors are orphaned: they continue by themselves, and may run twice.
	case view.Removing && view.Spec.RemovalPolicy == v1alpha1.RemovalOrphan:
		return release
	case anyEmbedded(mirrors):
		return renew
	default:
		return release
	}
}

func anyEmbedded(mirrors []packed.Facts) bool {
	for _, m := range mirrors {
		if m.ManagedBy == v1alpha1.ManagedByWorker {
			return true
		}
	}
	return false
}

// renewed judges a Lease as the worker's API server has it now.
func renewed(observed fence.Lease) metav1.Condition {
	late := fence.Late(observed.After, observed.Duration, observed.LostTimeout)
	switch {
	case observed.After == 0:
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonUnanswered,
			"no jobferry-worker has answered to the Lease in the worker: it doesn't run, may not watch Leases in "+
				v1alpha1.SystemNamespace+", or runs without a fence")
	case late != nil:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonFenceTooLate, late.Error())
	default:
		return condition(metav1.ConditionTrue, v1alpha1.ReasonFenceKept, fmt.Sprintf(
			"Jobs are stopped %s after this hub's last renewal, and continue elsewhere after %s",
			observed.Duration+observed.After, observed.LostTimeout))
	}
}

// failed judges a request about the Lease that failed; nil if that says nothing about the fence.
func failed(err error, lease string) *metav1.Condition {
	var c metav1.Condition
	switch {
	case apierrors.IsForbidden(err):
		c = condition(metav1.ConditionFalse, v1alpha1.ReasonLeaseForbidden,
			"run kubectl jobferry register again, which creates the Lease "+lease+" in the worker's namespace "+v1alpha1.SystemNamespace+
				", and grants the kubeconfig's user patch of it: "+err.Error())
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err):
		c = condition(metav1.ConditionFalse, v1alpha1.ReasonLeaseRefused, err.Error())
	default:
		return nil
	}
	return &c
}

// released says that no Job depends on the Lease (any more).
func released(view clusters.View) metav1.Condition {
	if view.Removing {
		return condition(metav1.ConditionFalse, v1alpha1.ReasonNoFence, "the worker is being removed; no Job in it depends on this hub's Lease")
	}
	return condition(metav1.ConditionFalse, v1alpha1.ReasonNoFence,
		"the built-in Job controller runs the Jobs: it continues them when the worker is disconnected, so that Jobs may run twice when they continue elsewhere")
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionFenced, Status: status, Reason: reason, Message: message}
}

// unansweredTries is how many times the answer of the worker's controller is looked for before the
// next renewal is due, after the Lease was created.
const unansweredTries = 10

// pause is the time to the next renewal, after that many without an answer.
func pause(interval time.Duration, unanswered int) time.Duration {
	if 0 < unanswered && unanswered <= unansweredTries {
		return interval / unansweredTries
	}
	return interval
}
