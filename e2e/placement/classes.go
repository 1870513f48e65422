package main

import (
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// classObjects are those that Pods name: what the API server adds to them, and whom they may
// preempt.
type classObjects struct {
	PriorityClasses []*schedulingv1.PriorityClass
	RuntimeClasses  []*nodev1.RuntimeClass
	// Preemption: the worker's admin lets Jobs preempt.
	Preemption bool
}

func (c *classObjects) copyOf() classObjects {
	return classObjects{copies(c.PriorityClasses), copies(c.RuntimeClasses), c.Preemption}
}

// classes renames what is known in the whole cluster. Pods name it, too.
func (l location) classes(c *classObjects) {
	for _, class := range c.PriorityClasses {
		class.Name = l.name(class.Name)
	}
	for _, class := range c.RuntimeClasses {
		class.Name = l.name(class.Name)
		if class.Scheduling != nil {
			class.Scheduling.NodeSelector = l.selector(class.Scheduling.NodeSelector)
		}
	}
}
