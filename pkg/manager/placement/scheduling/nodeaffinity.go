package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

var unselected = Reason{
	"NodeAffinity", "node(s) didn't match Pod's node affinity/selector",
	"spec.template.spec.nodeSelector and affinity.nodeAffinity",
}

func nodeAffinity(j *Job, _ view) filter {
	if j.nodeAffinity == nil {
		return nil
	}
	return func(p *place) *Reason {
		if !j.selects(p.node) {
			return &unselected
		}
		return nil
	}
}

// requiredNodeAffinity is nil if the Pod may be on all nodes.
func requiredNodeAffinity(pod *corev1.Pod) *nodeaffinity.RequiredNodeAffinity {
	affinity := pod.Spec.Affinity
	required := affinity != nil && affinity.NodeAffinity != nil &&
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if len(pod.Spec.NodeSelector) == 0 && !required {
		return nil
	}
	parsed := nodeaffinity.GetRequiredNodeAffinity(pod)
	return &parsed
}

// selects passes over what can't be parsed, as the scheduler does.
func (j *Job) selects(n *Node) bool {
	if j.nodeAffinity == nil {
		return true
	}
	matches, _ := j.nodeAffinity.Match(n.Object)
	return matches
}
