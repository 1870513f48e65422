package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// glance is what is read of a report without unpacking it.
type glance byte

const (
	isReady glance = 1 << iota
	isQuiet
	isMarked = 0x40 // no bytes that are no text
)

func glanceOf(status *corev1.PodStatus) glance {
	var g glance = isMarked
	if Ready(status) {
		g |= isReady
	}
	if quiet(status) {
		g |= isQuiet
	}
	return g
}

// Ready reports whether a Pod is, by its condition.
func Ready(status *corev1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// waitReasons are those of containers that are about to start.
var waitReasons = []string{"", "ContainerCreating", "PodInitializing"}

// quiet reports whether a Pod is as one that was just created: there is nothing to be told until a
// container runs, or says why it can't, or no node is found.
func quiet(status *corev1.PodStatus) bool {
	if status.Phase != corev1.PodPending {
		return false
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue || c.Type == corev1.DisruptionTarget {
			return false
		}
	}
	return !slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.State.Waiting != nil && !slices.Contains(waitReasons, c.State.Waiting.Reason)
	})
}
