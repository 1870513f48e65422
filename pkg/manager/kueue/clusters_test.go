package kueue

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// uncached is a cache that is never behind.
type uncached struct {
	cache.Cache
	client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return u.Reader.Get(ctx, key, into)
}

func (u uncached) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	return u.Reader.List(ctx, into)
}

// Kueue's own controller writes the condition of MultiKueueClusters, too. The manager writes its
// own over it with the next reconcile, which the foreign write doesn't trigger: nothing writes in a
// loop.
func TestConditionOfMultiKueueCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "uid"}, Spec: cluster().cluster.Spec}
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "check"}, Spec: kueue.AdmissionCheckSpec{
		ControllerName: v1alpha1.ManagedByDispatcher,
		Parameters:     &kueue.AdmissionCheckParametersReference{APIGroup: kueue.SchemeGroupVersion.Group, Kind: configKind, Name: "config"},
	}}
	config := &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Spec: kueue.MultiKueueConfigSpec{Clusters: []string{"w1"}}}
	writes := 0
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, check, config).WithStatusSubresource(cluster).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			if writes++; patch.Type() != types.ApplyPatchType {
				t.Errorf("the status is written by %s", patch.Type())
			}
			if _, metadata := object.(*metav1.PartialObjectMetadata); !metadata {
				t.Errorf("the answer is decoded as a %T", object)
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		}}).Build()
	r := &clusterReconciler{&session{options: DefaultOptions(), namespace: "jobferry-system", hub: hub, live: hub, objects: uncached{Reader: hub}}}

	reconcile := func() *kueue.MultiKueueCluster {
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "w1"}})
		if err != nil || result.RequeueAfter != recheckCluster {
			t.Errorf("got %+v, %v", result, err)
		}
		now := &kueue.MultiKueueCluster{}
		if err := hub.Get(t.Context(), types.NamespacedName{Name: "w1"}, now); err != nil {
			t.Fatal(err)
		}
		if got := now.Status.Conditions; len(got) != 1 || got[0].Reason != v1alpha1.ReasonSecretMissing {
			t.Errorf("conditions: %+v", got)
		}
		return now
	}
	before := reconcile()
	reconcile()
	if writes != 1 {
		t.Errorf("%d writes of one condition", writes)
	}

	foreign := before.DeepCopy()
	foreign.Status.Conditions[0] = metav1.Condition{Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionTrue, Reason: "Active", Message: "Connected"}
	if statusAside.Update(event.TypedUpdateEvent[*kueue.MultiKueueCluster]{ObjectOld: before, ObjectNew: foreign}) {
		t.Error("a foreign write of the status triggers a reconcile")
	}
	if err := hub.Status().Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	reconcile()
	reconcile()
	if writes != 2 {
		t.Errorf("%d writes after one foreign write", writes)
	}

	for name, edit := range map[string]func(*kueue.MultiKueueCluster){
		"spec":       func(c *kueue.MultiKueueCluster) { c.Generation++ },
		"annotation": func(c *kueue.MultiKueueCluster) { c.Annotations = map[string]string{"example.org/edited": "now"} },
	} {
		edited := before.DeepCopy()
		edit(edited)
		if !statusAside.Update(event.TypedUpdateEvent[*kueue.MultiKueueCluster]{ObjectOld: before, ObjectNew: edited}) {
			t.Errorf("an edit of the %s doesn't trigger a reconcile", name)
		}
	}
}
