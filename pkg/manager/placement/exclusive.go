package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// excludesItself says whether two Pods like this one can't be on the same node: they hold a port of
// the host, or require anti-affinity by hostname to Pods with their own labels.
func excludesItself(pod *corev1.Pod) bool {
	return holdsHostPort(&pod.Spec) || avoidsItself(pod)
}

func holdsHostPort(spec *corev1.PodSpec) bool {
	for _, container := range spec.Containers {
		for _, port := range container.Ports {
			if port.HostPort > 0 || spec.HostNetwork && port.ContainerPort > 0 {
				return true
			}
		}
	}
	return false
}

func avoidsItself(pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range terms {
		if terms[i].TopologyKey == corev1.LabelHostname && selectsItself(&terms[i], pod) {
			return true
		}
	}
	return false
}

// selectsItself reads a term's selector against the Pod's own labels. matchLabelKeys hold for Pods
// of the same template; mismatchLabelKeys never do. Terms over other namespaces are left to the
// scheduler.
func selectsItself(term *corev1.PodAffinityTerm, pod *corev1.Pod) bool {
	if len(term.Namespaces) > 0 || term.NamespaceSelector != nil || len(term.MismatchLabelKeys) > 0 {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}
