package main

import (
	"errors"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	evaluator "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

// namespaceLimits are what an API server's admission reads of a namespace.
type namespaceLimits struct {
	LimitRanges    []*corev1.LimitRange
	ResourceQuotas []*corev1.ResourceQuota
}

// limitRanger is the API server's plugin, for these LimitRanges; none, if there are none. It fills
// in their defaults.
func (l *namespaceLimits) limitRanger() (plugins, error) {
	if len(l.LimitRanges) == 0 {
		return nil, nil
	}
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
	return plugins{plugin}, plugin.ValidateInitialization()
}

// attributesOf the creation of a Pod.
func attributesOf(p *core.Pod) admission.Attributes {
	return admission.NewAttributesRecord(p, nil, core.Kind("Pod").WithVersion(""), p.Namespace, p.Name,
		core.Resource("pods").WithVersion(""), "", admission.Create, &metav1.CreateOptions{}, false, nil)
}

// used fills in the status of the quotas, with these objects.
func (l *namespaceLimits) used(pods []*corev1.Pod, o *objects) error {
	if len(l.ResourceQuotas) == 0 {
		return nil
	}
	counters, err := counting(pods, o)
	if err != nil {
		return err
	}
	for _, q := range l.ResourceQuotas {
		q.Status.Hard = q.Spec.Hard.DeepCopy()
		if q.Status.Used, err = quota.CalculateUsage(q.Namespace, q.Spec.Scopes, q.Spec.Hard, counters, q.Spec.ScopeSelector); err != nil {
			return err
		}
	}
	return nil
}

// quotaAdmission is what the quotas leave room for, one object after the other.
type quotaAdmission struct {
	quotas   []*corev1.ResourceQuota
	counters quota.Registry
	// refusal is why the last one was refused.
	refusal string
}

func (l *namespaceLimits) quotaAdmission(o *objects) (*quotaAdmission, error) {
	counters, err := counting(nil, o)
	return &quotaAdmission{quotas: l.ResourceQuotas, counters: counters}, err
}

// pods are those that are admitted.
func (a *quotaAdmission) pods(pods []*corev1.Pod) (admitted []*corev1.Pod, err error) {
	for _, p := range pods {
		var internal core.Pod
		if err := legacyscheme.Scheme.Convert(p, &internal, nil); err != nil {
			return nil, err
		}
		is, err := a.admits(attributesOf(&internal))
		if err != nil {
			return nil, err
		}
		if is {
			admitted = append(admitted, p)
		}
	}
	return admitted, nil
}

// admittedClaims are those that are admitted, of one kind.
func admittedClaims[T interface {
	runtime.Object
	metav1.Object
}](a *quotaAdmission, claims []T, kind schema.GroupVersionKind, resource schema.GroupVersionResource) (admitted []T, err error) {
	for _, c := range claims {
		is, err := a.admits(admission.NewAttributesRecord(c, nil, kind, c.GetNamespace(), c.GetName(), resource, "", admission.Create, &metav1.CreateOptions{}, false, nil))
		if err != nil {
			return nil, err
		}
		if is {
			admitted = append(admitted, c)
		}
	}
	return admitted, nil
}

func (a *quotaAdmission) admits(attributes admission.Attributes) (bool, error) {
	mine := slices.DeleteFunc(values(a.quotas), func(q corev1.ResourceQuota) bool { return q.Namespace != attributes.GetNamespace() })
	after, err := resourcequota.CheckRequest(mine, attributes, a.counters.Get(attributes.GetResource().GroupResource()), nil)
	if apierrors.IsForbidden(err) {
		a.refusal = err.Error()
		return false, nil
	}
	for i := range after {
		for _, q := range a.quotas {
			if q.Name == after[i].Name && q.Namespace == after[i].Namespace {
				q.Status = after[i].Status
			}
		}
	}
	return err == nil, err
}

func values[T any](list []*T) []T {
	all := make([]T, len(list))
	for i, v := range list {
		all[i] = *v
	}
	return all
}

// counting counts what Pods and claims take of quotas.
func counting(pods []*corev1.Pod, o *objects) (quota.Registry, error) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	err := errors.Join(know(factory, &corev1.Pod{}, pods), know(factory, &resourcev1.DeviceClass{}, o.DeviceClasses),
		know(factory, &resourcev1.ResourceClaim{}, o.ResourceClaims), know(factory, &corev1.PersistentVolumeClaim{}, o.PersistentVolumeClaims))
	if err != nil {
		return nil, err
	}
	known := map[string]runtime.Object{"pods": &corev1.Pod{}, "resourceclaims": &resourcev1.ResourceClaim{}, "persistentvolumeclaims": &corev1.PersistentVolumeClaim{}}
	lister := func(r schema.GroupVersionResource) (cache.GenericLister, error) {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if of := known[r.Resource]; of != nil {
			indexer = factory.InformerFor(of, nil).GetIndexer()
		}
		return cache.NewGenericLister(indexer, r.GroupResource()), nil
	}
	// What it takes, and whether it fails, depends on the release.
	makes := reflect.ValueOf(evaluator.NewEvaluators)
	arguments := []reflect.Value{reflect.ValueOf(quota.ListerForResourceFunc(lister)), reflect.ValueOf(factory)}
	for i := len(arguments); i < makes.Type().NumIn(); i++ {
		arguments = append(arguments, reflect.Zero(makes.Type().In(i)))
	}
	made := makes.Call(arguments[:makes.Type().NumIn()])
	if failed := made[len(made)-1]; len(made) > 1 && !failed.IsNil() {
		return nil, failed.Interface().(error)
	}
	return generic.NewRegistry(made[0].Interface().([]quota.Evaluator)), nil
}

// refused is why the API server refuses a Pod for its LimitRanges or classes.
type refused struct{ error }
