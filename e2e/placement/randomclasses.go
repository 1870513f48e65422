package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// priorities gives Pods classes, and perhaps one of them to those that name none. The Job may
// preempt.
func (s source) priorities(p *pair) {
	p.Preemption = true
	for value := int32(-50); value <= 100; value += 50 {
		class := &schedulingv1.PriorityClass{Value: value}
		class.Name = fmt.Sprintf("p%d", len(p.PriorityClasses))
		if s.chance(15) {
			class.PreemptionPolicy = ptr.To(corev1.PreemptNever)
		}
		class.GlobalDefault = s.chance(10)
		p.PriorityClasses = append(p.PriorityClasses, class)
	}
	for _, pod := range p.Pods {
		pod.Spec.PriorityClassName = s.of("p0", "p1", "p2", "p3", "")
	}
	p.Job.Spec.Template.Spec.PriorityClassName = s.of("p1", "p1", "p2", "p2", "p3", "p3", "", "absent")
}

// runtimes lets the Job name a RuntimeClass.
func (s source) runtimes(p *pair) {
	class := &nodev1.RuntimeClass{Handler: "sandbox"}
	class.Name = "sandbox"
	if s.chance(60) {
		class.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse(s.of("250m", "1"))}}
	}
	if s.chance(60) {
		class.Scheduling = &nodev1.Scheduling{}
		if s.chance(70) {
			class.Scheduling.NodeSelector = map[string]string{s.of("disk", zoneKey): s.of("ssd", "hdd", "a")}
		}
		if s.chance(50) {
			class.Scheduling.Tolerations = []corev1.Toleration{s.toleration()}
		}
	}
	p.RuntimeClasses = append(p.RuntimeClasses, class)
	p.Job.Spec.Template.Spec.RuntimeClassName = ptr.To(s.of("sandbox", "sandbox", "sandbox", "sandbox", "absent"))
}
