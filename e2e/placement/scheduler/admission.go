package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	evaluator "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/clock"
)

// namespaceLimits are what an API server's admission reads of a namespace.
type namespaceLimits struct {
	LimitRanges    []*corev1.LimitRange
	ResourceQuotas []*corev1.ResourceQuota
}

// limitRanger is the API server's plugin, for these LimitRanges. It fills in their defaults.
func (l *namespaceLimits) limitRanger() (*limitranger.LimitRanger, error) {
	for _, r := range l.LimitRanges {
		legacyscheme.Scheme.Default(r)
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := know(factory, &corev1.LimitRange{}, l.LimitRanges); err != nil {
		return nil, err
	}
	plugin, err := limitranger.NewLimitRanger(&limitranger.DefaultLimitRangerActions{})
	if err != nil {
		return nil, err
	}
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetExternalKubeClientSet(client)
	return plugin, plugin.ValidateInitialization()
}

// attributesOf the creation of a Pod.
func attributesOf(p *core.Pod) admission.Attributes {
	return admission.NewAttributesRecord(p, nil, core.Kind("Pod").WithVersion(""), p.Namespace, p.Name,
		core.Resource("pods").WithVersion(""), "", admission.Create, &metav1.CreateOptions{}, false, nil)
}

// used fills in the status of the quotas, with these Pods.
func (l *namespaceLimits) used(pods []*corev1.Pod) error {
	counter := counting(pods)
	for _, q := range l.ResourceQuotas {
		stats, err := counter.UsageStats(quota.UsageStatsOptions{
			Namespace: q.Namespace, Scopes: q.Spec.Scopes, ScopeSelector: q.Spec.ScopeSelector, Resources: quota.ResourceNames(q.Spec.Hard),
		})
		if err != nil {
			return err
		}
		q.Status.Hard, q.Status.Used = q.Spec.Hard.DeepCopy(), stats.Used
	}
	return nil
}

// admit returns the Pods that the quotas leave room for, one after the other, and why others are refused.
func (l *namespaceLimits) admit(pods []*corev1.Pod) (admitted []*corev1.Pod, refusal string, err error) {
	counter := counting(nil)
	for _, p := range pods {
		var internal core.Pod
		if err := legacyscheme.Scheme.Convert(p, &internal, nil); err != nil {
			return nil, "", err
		}
		mine := slices.DeleteFunc(values(l.ResourceQuotas), func(q corev1.ResourceQuota) bool { return q.Namespace != p.Namespace })
		after, err := resourcequota.CheckRequest(mine, attributesOf(&internal), counter, nil)
		if apierrors.IsForbidden(err) {
			refusal = err.Error()
			continue
		} else if err != nil {
			return nil, "", err
		}
		for i := range after {
			for _, q := range l.ResourceQuotas {
				if q.Name == after[i].Name && q.Namespace == after[i].Namespace {
					q.Status = after[i].Status
				}
			}
		}
		admitted = append(admitted, p)
	}
	return admitted, refusal, nil
}

func values[T any](list []*T) []T {
	all := make([]T, len(list))
	for i, v := range list {
		all[i] = *v
	}
	return all
}

// counting counts what Pods take of quotas.
func counting(pods []*corev1.Pod) quota.Evaluator {
	return evaluator.NewPodEvaluator(func(schema.GroupVersionResource) (cache.GenericLister, error) {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, p := range pods {
			if err := indexer.Add(p); err != nil {
				return nil, err
			}
		}
		return cache.NewGenericLister(indexer, schema.GroupResource{Resource: "pods"}), nil
	}, clock.RealClock{})
}

// refused is why the API server refuses a Pod for its LimitRanges.
type refused struct{ error }

// limited runs the mutating half of the plugin, if there is one, and returns the other half.
func limited(l *limitranger.LimitRanger, attributes admission.Attributes) (validate func() error, err error) {
	if l == nil {
		return func() error { return nil }, nil
	}
	if err := l.Admit(context.Background(), attributes, nil); err != nil {
		return nil, refused{fmt.Errorf("admit: %w", err)}
	}
	return func() error {
		if err := l.Validate(context.Background(), attributes, nil); err != nil {
			return refused{err}
		}
		return nil
	}, nil
}
