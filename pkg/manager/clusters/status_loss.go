package clusters

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// lostCondition tells what the hub makes of a worker that isn't Ready; nil: as before, until
// there's a first verdict.
func lostCondition(s snapshot) *metav1.Condition {
	c := &metav1.Condition{
		Type: v1alpha1.ConditionLost, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonInTouch, LastTransitionTime: metav1.NewTime(s.now),
	}
	loss := s.worker.loss
	since := loss.Since.UTC().Format(time.RFC3339)
	switch {
	case s.worker.State == Connecting:
		return nil
	case loss.State == LossPending:
		c.Reason = v1alpha1.ReasonNotReady
		c.Message = fmt.Sprintf("not Ready since %s; Jobs placed here go on elsewhere from %s on",
			since, loss.At.UTC().Format(time.RFC3339))
	case loss.State == Isolated:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonHubIsolated
		c.Message = fmt.Sprintf("not Ready since %s, but no other worker is Ready either: "+
			"that may be the hub's own network, so nothing is moved", since)
	case loss.State == Lost:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonLostTimeout
		c.Message = fmt.Sprintf("not Ready since %s: Jobs placed here go on elsewhere", since)
	default:
		c.Message = "the worker is Ready"
	}
	return c
}

// lossEvents tell when a worker is given up, and when the hub suspects itself.
func lossEvents(s snapshot, next v1alpha1.WorkerClusterStatus) []event {
	before := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionLost)
	after := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionLost)
	if after == nil || after.Status == metav1.ConditionFalse || before != nil && before.Status == after.Status {
		return nil
	}
	return []event{{kind: corev1.EventTypeWarning, reason: after.Reason, action: "Connect", message: after.Message}}
}
