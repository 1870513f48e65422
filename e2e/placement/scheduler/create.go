package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
)

var tolerations = newTolerations()

func newTolerations() *defaulttolerationseconds.Plugin {
	p := defaulttolerationseconds.NewDefaultTolerationSeconds()
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	return p
}

// plugins of the API server's admission, in their order.
type plugins []admission.Interface

// create makes of Pods what an API server stores of them.
func create(pods []*corev1.Pod, by plugins) error {
	for _, p := range pods {
		if err := by.create(p); err != nil {
			return fmt.Errorf("create Pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

func (p plugins) create(object *corev1.Pod) error {
	legacyscheme.Scheme.Default(object)
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(object, &internal, nil); err != nil {
		return err
	}
	attributes := attributesOf(&internal)
	all := append(slices.Clone(p), tolerations)
	for _, plugin := range all {
		if m, is := plugin.(admission.MutationInterface); is {
			if err := m.Admit(context.Background(), attributes, nil); err != nil {
				return err
			}
		}
	}
	ctx := genericapirequest.WithNamespace(context.Background(), object.Namespace)
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIVersion: corev1.SchemeGroupVersion.Version, Resource: "pods",
	})
	rest.FillObjectMetaSystemFields(&internal)
	if err := rest.BeforeCreate(pod.Strategy, ctx, &internal); err != nil {
		return err
	}
	for _, plugin := range all {
		if v, is := plugin.(admission.ValidationInterface); is {
			if err := v.Validate(context.Background(), attributes, nil); err != nil {
				return err
			}
		}
	}
	*object = corev1.Pod{}
	return legacyscheme.Scheme.Convert(&internal, object, nil)
}
