package main

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"
)

// priorities let the Job preempt Pods of a lower priority.
type priorities struct {
	// Class of the Job's Pods; nil: nobody preempts anybody.
	Class *schedulingv1.PriorityClass
}

func (s source) priorities(p *pair) {
	p.Class = &schedulingv1.PriorityClass{Value: int32(s.IntN(3) * 50)} //nolint:gosec // at most 100
	p.Class.Name = "job"
	if s.chance(15) {
		p.Class.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	}
	p.Job.Spec.Template.Spec.PriorityClassName = p.Class.Name
	for _, pod := range p.Pods {
		pod.Spec.Priority = ptr.To(int32(s.IntN(4)*50 - 50)) //nolint:gosec // at most 100
	}
}

// resolve gives a Pod of the Job what its class says, as the API server does.
func (p *priorities) resolve(spec *corev1.PodSpec) {
	if p.Class != nil {
		spec.Priority, spec.PreemptionPolicy = &p.Class.Value, p.Class.PreemptionPolicy
	}
}

// classes are as our judge knows them.
func (p *priorities) classes() map[string]*schedulingv1.PriorityClass {
	if p.Class == nil {
		return nil
	}
	return map[string]*schedulingv1.PriorityClass{p.Class.Name: p.Class}
}
