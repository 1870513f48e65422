package clusters

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// nextStatus is the WorkerCluster's status as of now.
func nextStatus(s gathered) v1alpha1.WorkerClusterStatus {
	next := *s.cluster.Status.DeepCopy()
	w := s.worker
	next.ObservedGeneration = s.cluster.Generation
	next.Jobs = int32(s.left()) //nolint:gosec // no hub has 2^31 Jobs
	next.Stockouts = s.stockouts
	setCondition(&next, s, readyCondition(s))
	setCondition(&next, s, schedulableCondition(s))
	setCondition(&next, s, lostCondition(s))
	setCondition(&next, s, exclusiveCondition(s))
	setCondition(&next, s, clockCondition(s))
	for i := range w.reports {
		setCondition(&next, s, &w.reports[i])
	}
	if w.ClusterUID != "" {
		next.ClusterUID = w.ClusterUID
	}
	if w.Version != "" {
		next.KubernetesVersion = w.Version
	}
	switch {
	case w.Capacity.Known:
		next.Nodes = int32(w.totals.Schedulable) //nolint:gosec // no cluster has 2^31 nodes
		next.Allocatable = rounded(w.totals.Allocatable)
		next.Requested = rounded(w.totals.Requested)
		next.Free = rounded(w.totals.Free)
	case w.State == Ready && !w.Capacity.Listing:
		next.Nodes, next.Allocatable, next.Requested, next.Free = 0, nil, nil, nil
	}
	if !w.LastContact.IsZero() {
		at := metav1.NewTime(w.LastContact)
		next.LastContactTime = &at
	}
	return next
}

// left counts the unfinished Jobs that are placed on the worker; while it's drained, also those
// that have yet to stop there before they continue elsewhere.
func (s *gathered) left() int {
	if s.cluster.Spec.Drain && s.worker != nil {
		return max(s.unfinished, s.worker.running)
	}
	return s.unfinished
}

func setCondition(status *v1alpha1.WorkerClusterStatus, s gathered, c *metav1.Condition) {
	if c != nil {
		c.ObservedGeneration = s.cluster.Generation
		c.Message = text.Clean(c.Message, text.MaxMessage) // it may be the worker's
		meta.SetStatusCondition(&status.Conditions, *c)
	}
}

// readyCondition says whether the worker is connected; nil: as before. Until the first observation
// after a start of the manager, the earlier condition stands: a restart is no loss.
func readyCondition(s gathered) *metav1.Condition {
	w := s.worker
	if w.State == Connecting && meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionReady) != nil {
		return nil
	}
	c := &metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: w.Reason, Message: w.Message,
		LastTransitionTime: metav1.NewTime(w.Since),
	}
	if w.State == Ready {
		c.Status = metav1.ConditionTrue
		c.LastTransitionTime = metav1.NewTime(s.now)
	}
	if w.State == Refused && s.secret != nil && w.Reason != v1alpha1.ReasonSecretMissing {
		c.Message = fmt.Sprintf("Secret %s/%s: %s", s.secret.Namespace, s.secret.Name, w.Message)
	}
	return c
}

// clockCondition says whether the worker's clock agrees with the hub's; nil: it always has.
func clockCondition(s gathered) *metav1.Condition {
	c := &metav1.Condition{Type: v1alpha1.ConditionClockAgrees, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(s.now)}
	ahead := s.worker.ClockAhead
	how := " the hub's: times of its Jobs are corrected by that; set the clocks there, such as by NTP"
	switch {
	case ahead > 0:
		c.Reason, c.Message = v1alpha1.ReasonClockBehind, "the clock of its API server is "+ahead.String()+" behind"+how
	case ahead < 0:
		c.Reason, c.Message = v1alpha1.ReasonClockAhead, "the clock of its API server is "+(-ahead).String()+" ahead of"+how
	case s.worker.State != Ready || meta.FindStatusCondition(s.cluster.Status.Conditions, c.Type) == nil:
		return nil
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonClockAgrees, "the clock of its API server agrees with the hub's"
	}
	return c
}

// schedulableCondition says whether new Jobs may be placed there; nil: as before.
func schedulableCondition(s gathered) *metav1.Condition {
	w := s.worker
	reason, ok := w.Schedulable()
	if reason == v1alpha1.ReasonNotReady && w.Awaited() &&
		meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionSchedulable) != nil {
		return nil
	}
	c := &metav1.Condition{
		Type: v1alpha1.ConditionSchedulable, Status: metav1.ConditionFalse,
		Reason: reason, LastTransitionTime: metav1.NewTime(s.now),
	}
	switch {
	case ok && w.Capacity.Missing != "":
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonCapacityUnknown
		c.Message = "Jobs are placed without a check of what fits: " + w.Capacity.Missing +
			"; grant it, or set spec.capacity to Unlimited"
	case ok && w.Capacity.Unchecked != "":
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonPartlyChecked
		c.Message = "Jobs are placed without some checks of what fits: " + w.Capacity.Unchecked
	case ok:
		c.Status = metav1.ConditionTrue
		c.Message = "Jobs may be placed here"
	case reason == v1alpha1.ReasonRemoving:
		c.Message = removalMessage(s)
	case reason == v1alpha1.ReasonCordoned:
		c.Message = "spec.cordoned is set"
	case reason == v1alpha1.ReasonNamespaceSelectorInvalid:
		_, err := w.Namespaces()
		c.Message = err.Error() + "; correct it, or remove it to allow every namespace that is dispatched"
	case reason == v1alpha1.ReasonDraining:
		c.Message = fmt.Sprintf("spec.drain is set; unfinished Jobs left here: %d", s.left())
	case reason == v1alpha1.ReasonHeldElsewhere:
		c.Message = "see the condition " + v1alpha1.ConditionExclusive
	case reason == v1alpha1.ReasonTooManyMirrors:
		c.Message = "the worker has as many Jobs of this hub as spec.maxMirrors allows; those that have ended stay until their Jobs on the hub are deleted"
	default:
		c.Message = "see the condition Ready"
	}
	return c
}

// statusUrgency is how soon a change of the status has to be written.
type statusUrgency int

const (
	statusSame statusUrgency = iota
	// statusLater: it may wait. A worker can change numbers and messages as often as it likes, and
	// many Stockouts may come at once.
	statusLater
	// statusUrgent: something differs that people or programs act on.
	statusUrgent
)

// urgentConditions are those of which all but the message is urgent. Of others, it's that there are
// any.
var urgentConditions = []string{v1alpha1.ConditionReady, v1alpha1.ConditionLost, v1alpha1.ConditionExclusive}

// adminsReasons are those that no worker brings about.
var adminsReasons = []string{
	v1alpha1.ReasonRemoving, v1alpha1.ReasonDraining, v1alpha1.ReasonCordoned, v1alpha1.ReasonNamespaceSelectorInvalid,
}

func compareStatus(before, after v1alpha1.WorkerClusterStatus) statusUrgency {
	before.LastContactTime, after.LastContactTime = nil, nil // isn't written for its own sake
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return statusSame
	case isUrgent(&before, &after):
		return statusUrgent
	default:
		return statusLater
	}
}

// isUrgent reports whether the admin has changed something, it's another cluster, its numbers are
// known now, or a condition is urgent.
func isUrgent(before, after *v1alpha1.WorkerClusterStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || before.ClusterUID != after.ClusterUID || len(before.Free) == 0 && len(after.Free) > 0 {
		return true
	}
	return slices.ContainsFunc(after.Conditions, func(is metav1.Condition) bool {
		was := meta.FindStatusCondition(before.Conditions, is.Type)
		switch {
		case was == nil:
			return true
		case was.Status == is.Status && was.Reason == is.Reason:
			return false
		default:
			return slices.Contains(urgentConditions, is.Type) || slices.Contains(adminsReasons, was.Reason) || slices.Contains(adminsReasons, is.Reason)
		}
	})
}

const (
	mebibyte = 1 << 20
	// maxResources bounds the resources in a WorkerCluster's status.
	maxResources = 64
)

// rounded makes quantities readable and steady: bytes are rounded down to whole MiB, and all are
// written in their canonical form, such as 12500m or 48Gi.
//
// Names of resources are the worker's: those that aren't valid are left out, and so are those
// beyond maxResources in alphabetical order.
func rounded(list corev1.ResourceList) corev1.ResourceList {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(list)), func(n corev1.ResourceName) bool {
		return !objectnames.IsLabelKey(string(n))
	})
	names = names[:min(len(names), maxResources)]
	result := make(corev1.ResourceList, len(names))
	for _, name := range names {
		quantity := list[name]
		switch value := quantity.Value(); {
		case name == corev1.ResourceCPU:
			result[name] = *resource.NewMilliQuantity(quantity.MilliValue(), resource.DecimalSI)
		case value >= mebibyte && quantity.Format == resource.BinarySI:
			result[name] = *resource.NewQuantity(value/mebibyte*mebibyte, resource.BinarySI)
		default:
			result[name] = *resource.NewQuantity(value, quantity.Format)
		}
	}
	return result
}

// readinessEvents report a worker that was connected or disconnected, or is unusable for another
// reason than before.
func readinessEvents(s gathered, next v1alpha1.WorkerClusterStatus) []event {
	before := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionReady)
	after := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	if after == nil || after.Reason == v1alpha1.ReasonConnecting {
		return nil
	}
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return nil
	}
	kind := corev1.EventTypeWarning
	if after.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	return []event{{kind: kind, reason: after.Reason, action: "Connect", message: after.Message}}
}

// lostCondition says whether the worker counts as lost; nil: as before, until the first
// observation.
func lostCondition(s gathered) *metav1.Condition {
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
		c.Message = fmt.Sprintf("not Ready since %s; Jobs placed here continue elsewhere from %s on",
			since, loss.At.UTC().Format(time.RFC3339))
	case loss.State == Isolated:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonHubIsolated
		c.Message = fmt.Sprintf("not Ready since %s, but no other worker is Ready either: "+
			"that may be the hub's own network, so nothing is moved", since)
	case loss.State == Lost:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonLostTimeout
		c.Message = fmt.Sprintf("not Ready since %s: Jobs placed here continue elsewhere", since)
	default:
		c.Message = "the worker is Ready"
	}
	return c
}

// lossEvents report a worker that counts as lost, and an isolated hub.
func lossEvents(s gathered, next v1alpha1.WorkerClusterStatus) []event {
	before := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionLost)
	after := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionLost)
	if after == nil || after.Status == metav1.ConditionFalse || before != nil && before.Status == after.Status {
		return nil
	}
	return []event{{kind: corev1.EventTypeWarning, reason: after.Reason, action: "Connect", message: after.Message}}
}
