package clusters

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// removable reports whether a worker whose Secret is being deleted can be removed, with the event.
func removable(s gathered, options Options) (event, bool) {
	for _, rule := range removalRules {
		if rule.applies(s, options) {
			return event{kind: rule.kind, reason: "Removed", action: "Remove", message: rule.message(s)}, true
		}
	}
	return event{}, false
}

// removalRules are checked in order: by the first that applies, the worker is removed. If none
// does, the finalizer stays.
var removalRules = []struct {
	kind    string
	applies func(gathered, Options) bool
	message func(gathered) string
}{
	// Nothing was ever placed on a worker that was never connected.
	{corev1.EventTypeNormal, func(s gathered, _ Options) bool { return s.unfinished == 0 && neverReached(s) },
		func(gathered) string { return "the worker is removed; it was never connected" }},
	// The worker itself shows that nothing is left.
	{corev1.EventTypeNormal, func(s gathered, _ Options) bool {
		return empty(s) && (s.unfinished == 0 || orphan(s))
	}, func(gathered) string { return "the worker is removed; no Job of this hub is left in it" }},
	// The admin doesn't want to wait for a worker that can't be reached.
	{corev1.EventTypeWarning, func(s gathered, options Options) bool { return orphan(s) && (lost(s) || graceOver(s, options)) },
		func(s gathered) string {
			return fmt.Sprintf("the worker is removed with removalPolicy Orphan; left in it, perhaps running: %d Jobs known of; unfinished on the hub: %d",
				mirrorsOf(s), s.unfinished)
		}},
}

func orphan(s gathered) bool {
	return s.cluster != nil && s.cluster.Spec.RemovalPolicy == v1alpha1.RemovalOrphan
}

func neverReached(s gathered) bool {
	known := s.cluster != nil && s.cluster.Status.ClusterUID != ""
	return !known && (s.worker == nil || s.worker.ClusterUID == "")
}

func empty(s gathered) bool {
	return s.worker != nil && s.worker.Removing && s.worker.State == Ready && s.worker.mirrors == 0 && !leased(s)
}

// leased reports whether the fence's Lease is still there. Until this process has found out, it is
// if it was for the last one.
func leased(s gathered) bool {
	fenced := meta.FindStatusCondition(s.worker.reports, v1alpha1.ConditionFenced)
	if fenced == nil && s.cluster != nil {
		fenced = meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionFenced)
	}
	return fenced != nil && fenced.Reason != v1alpha1.ReasonNoFence
}

func lost(s gathered) bool {
	return s.worker != nil && (s.worker.State == Disconnected || s.worker.State == Refused)
}

func graceOver(s gathered, options Options) bool {
	return !s.now.Before(s.secret.DeletionTimestamp.Add(options.OrphanGrace))
}

func mirrorsOf(s gathered) int {
	if s.worker == nil {
		return 0
	}
	return s.worker.mirrors
}

// removalMessage says what a removal waits for.
func removalMessage(s gathered) string {
	policy := s.cluster.Spec.RemovalPolicy
	waits := fmt.Sprintf("the Secret is being deleted, removalPolicy is %s: %d unfinished Jobs, %d mirrors left",
		policy, s.unfinished, mirrorsOf(s))
	if lost(s) && policy != v1alpha1.RemovalOrphan {
		return waits + "; the worker can't be reached to look: set spec.removalPolicy to Orphan to remove it all the same"
	}
	return waits
}
