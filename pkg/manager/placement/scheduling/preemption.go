package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"
)

// preempting answers as if the Pods that the Job may preempt were gone; false: there is none, or it
// may preempt none.
//
// The scheduler removes what keeps one Pod away, and keeps of that what fits beside it after all. So it
// preempts no more than this takes away. It prefers to respect PodDisruptionBudgets, and doesn't
// have to. Claims and volumes of the Pods that would go are taken to stay in use, and a gang is taken
// to preempt nothing.
func (a *admitted) preempting(s *Snapshot, wanted int64) (Answer, bool) {
	priority, may := s.Admission.preemptor(a.spec)
	if !may || a.gang > 1 {
		return Answer{}, false
	}
	without, changed := s.from(priority)
	if !changed {
		return Answer{}, false
	}
	answer := a.judge(without, wanted)
	answer.Preempts = true
	return answer, true
}

// preemptor is the priority that the API server gives a Pod, and whether the Pod may preempt others.
func (a *Admission) preemptor(spec *corev1.PodSpec) (priority int32, may bool) {
	if a == nil || a.PriorityClasses == nil {
		return 0, false
	}
	class := a.PriorityClasses[spec.PriorityClassName]
	if spec.PriorityClassName == "" {
		class = a.defaultPriority()
	}
	if class == nil {
		return 0, true
	}
	return class.Value, ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority) != corev1.PreemptNever
}

// defaultPriority is the class of Pods that name none; nil if there is none. Of several, the API server
// takes the one with the lowest value.
func (a *Admission) defaultPriority() *schedulingv1.PriorityClass {
	var lowest *schedulingv1.PriorityClass
	for _, class := range a.PriorityClasses {
		if class.GlobalDefault && (lowest == nil || class.Value < lowest.Value) {
			lowest = class
		}
	}
	return lowest
}

// from is the Snapshot without the Pods of a lower priority; false: there is none.
func (s *Snapshot) from(priority int32) (*Snapshot, bool) {
	without := *s
	without.Nodes, without.guarded = make([]*Node, len(s.Nodes)), nil
	changed := false
	for i, n := range s.Nodes {
		without.Nodes[i] = n.from(priority)
		changed = changed || without.Nodes[i] != n
	}
	without.findGuards()
	return &without, changed
}

// from is the node without the Pods of a lower priority.
func (n *Node) from(priority int32) *Node {
	lower := 0
	for _, p := range n.Pods {
		if p.Priority < priority {
			lower++
		}
	}
	if lower == 0 {
		return n
	}
	here, entries := *n.Node, map[kind]*kindEntry{}
	for i := range n.kinds {
		entries[n.kinds[i].of.kind] = n.kinds[i].of
	}
	kept := make([]*Pod, 0, len(n.Pods)-lower)
	for _, p := range n.Pods {
		if p.Priority >= priority {
			kept = append(kept, p)
			continue
		}
		here.Free = here.Free.Add(p.Requests, 1)
		if p.Lasts {
			here.Idle = here.Idle.Add(p.Requests, 1)
		}
	}
	return &Node{&here, podsOf(kept, entries)}
}
