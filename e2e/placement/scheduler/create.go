package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

var tolerations = newTolerations()

func newTolerations() *defaulttolerationseconds.Plugin {
	p := defaulttolerationseconds.NewDefaultTolerationSeconds()
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	return p
}

// create makes of Pods what an API server stores of them.
func create(pods []*corev1.Pod, limits *limitranger.LimitRanger) error {
	for _, p := range pods {
		if err := createPod(p, limits); err != nil {
			return fmt.Errorf("create Pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

func createPod(p *corev1.Pod, limits *limitranger.LimitRanger) error {
	legacyscheme.Scheme.Default(p)
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(p, &internal, nil); err != nil {
		return err
	}
	attributes := attributesOf(&internal)
	if err := tolerations.Admit(context.Background(), attributes, nil); err != nil {
		return err
	}
	validate, err := limited(limits, attributes)
	if err != nil {
		return err
	}
	ctx := genericapirequest.WithNamespace(context.Background(), p.Namespace)
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIVersion: corev1.SchemeGroupVersion.Version, Resource: "pods",
	})
	rest.FillObjectMetaSystemFields(&internal)
	if err := rest.BeforeCreate(pod.Strategy, ctx, &internal); err != nil {
		if limits != nil {
			return refused{err} // such as a request above the limit that was filled in
		}
		return err
	}
	if err := validate(); err != nil {
		return err
	}
	*p = corev1.Pod{}
	return legacyscheme.Scheme.Convert(&internal, p, nil)
}
