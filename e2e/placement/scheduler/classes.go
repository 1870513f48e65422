package main

import (
	"errors"

	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
)

// classObjects are those that Pods name.
type classObjects struct {
	PriorityClasses []*schedulingv1.PriorityClass
	RuntimeClasses  []*nodev1.RuntimeClass
	// Preemption: new Pods may preempt others.
	Preemption bool
}

// plugins of the API server that read the classes, of those kinds of which there are some.
func (c *classObjects) plugins() (plugins, error) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := errors.Join(
		know(factory, &schedulingv1.PriorityClass{}, c.PriorityClasses),
		know(factory, &nodev1.RuntimeClass{}, c.RuntimeClasses),
	); err != nil {
		return nil, err
	}
	var all plugins
	if len(c.PriorityClasses) > 0 {
		p := priority.NewPlugin()
		p.SetExternalKubeInformerFactory(factory)
		p.SetExternalKubeClientSet(client)
		if err := p.ValidateInitialization(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(c.RuntimeClasses) > 0 {
		p := runtimeclass.NewRuntimeClass()
		p.SetExternalKubeInformerFactory(factory)
		p.SetExternalKubeClientSet(client)
		if err := p.ValidateInitialization(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
