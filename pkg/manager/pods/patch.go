package pods

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// statusPatch writes a report to a shadow, as a strategic merge: conditions that the report hasn't
// stay. Of the containers it has those that the shadow has.
func statusPatch(to *shadow, digest string, report *corev1.Pod) ([]byte, error) {
	status := &report.Status
	return patchOf(to, digest, map[string]any{
		"phase": status.Phase, "reason": orNull(status.Reason), "message": orNull(status.Message), "startTime": status.StartTime,
		"conditions":            conditionsOf(status.Conditions),
		"initContainerStatuses": ofContainers(to, status.InitContainerStatuses),
		"containerStatuses":     ofContainers(to, status.ContainerStatuses),
	})
}

// plainPatch writes only what the hub refuses of no Pod.
func plainPatch(to *shadow, digest string, report *corev1.Pod) ([]byte, error) {
	conditions := slices.DeleteFunc(slices.Clone(report.Status.Conditions), func(c corev1.PodCondition) bool { return c.Type != corev1.PodReady })
	return patchOf(to, digest, map[string]any{"phase": report.Status.Phase, "conditions": conditionsOf(conditions)})
}

func patchOf(to *shadow, digest string, status map[string]any) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": to.uid, "annotations": map[string]string{annotationDigest: digest}},
		"status":   status,
	})
}

// conditionsOf names each field: those that are missing would stay as they were.
func conditionsOf(from []corev1.PodCondition) []map[string]any {
	all := make([]map[string]any, 0, len(from))
	for i := range from {
		c := &from[i]
		all = append(all, map[string]any{
			"type": c.Type, "status": c.Status, "reason": orNull(c.Reason), "message": orNull(c.Message),
			"lastTransitionTime": c.LastTransitionTime,
		})
	}
	return all
}

func ofContainers(to *shadow, from []corev1.ContainerStatus) []corev1.ContainerStatus {
	return slices.DeleteFunc(slices.Clone(from), func(c corev1.ContainerStatus) bool { return !to.hasContainer(c.Name) })
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
