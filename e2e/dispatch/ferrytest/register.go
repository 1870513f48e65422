package ferrytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// Register registers workers in the pool "main", unless they are, and waits until they are Ready.
func (f *Ferry) Register(workers ...string) {
	f.t.Helper()
	for _, name := range workers {
		f.RegisterSecret(name, map[string][]byte{v1alpha1.KubeconfigKey: f.kubeconfig(name)}, nil)
	}
	for _, name := range workers {
		f.WorkerUntil(name, Ready)
	}
}

// kubeconfig of a worker; through its proxy, if it has one.
func (f *Ferry) kubeconfig(name string) []byte {
	worker := f.Cluster(name)
	if worker.HasProxy() {
		return worker.ProxyKubeconfigBytes()
	}
	return worker.KubeconfigBytes()
}

// RegisterSecret creates a registration Secret, unless there is one of that name.
func (f *Ferry) RegisterSecret(name string, data map[string][]byte, labels map[string]string) {
	f.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1alpha1.LabelWorkerCluster: "true", "name": name, "pool": "main",
		}},
		Data: data,
	}
	maps.Copy(secret.Labels, labels)
	_, err := f.Hub.Client().CoreV1().Secrets(SystemNamespace).Create(f.Context(), secret, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		f.t.Fatal(err)
	}
}

// Unregister deletes a registration Secret. It doesn't wait until the worker is removed.
func (f *Ferry) Unregister(name string) {
	f.t.Helper()
	err := f.Hub.Client().CoreV1().Secrets(SystemNamespace).Delete(f.Context(), name, metav1.DeleteOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// SecretGone waits until a registration Secret doesn't exist.
func (f *Ferry) SecretGone(name string) {
	f.t.Helper()
	f.Until(rig.Object(f.Hub.Client().CoreV1().RESTClient(), "secrets", SystemNamespace, name), rig.Gone)
}

// WorkerUntil waits until a condition holds for a WorkerCluster.
func (f *Ferry) WorkerUntil(name string, condition func(*v1alpha1.WorkerCluster) bool) *v1alpha1.WorkerCluster {
	f.t.Helper()
	return f.Until(rig.Object(f.API(v1alpha1.GroupVersion), "workerclusters", "", name), func(o runtime.Object) bool {
		w, ok := o.(*v1alpha1.WorkerCluster)
		return ok && condition(w)
	}).(*v1alpha1.WorkerCluster)
}

// WorkerGone waits until a WorkerCluster doesn't exist.
func (f *Ferry) WorkerGone(name string) {
	f.t.Helper()
	f.Until(rig.Object(f.API(v1alpha1.GroupVersion), "workerclusters", "", name), rig.Gone)
}

// SetWorker merges fields into a WorkerCluster's spec, given as JSON.
func (f *Ferry) SetWorker(name, spec string) {
	f.t.Helper()
	err := f.API(v1alpha1.GroupVersion).Patch(types.MergePatchType).Resource("workerclusters").Name(name).
		Body(fmt.Appendf(nil, `{"spec":%s}`, spec)).Do(f.Context()).Error()
	if err != nil {
		f.t.Fatal(err)
	}
}

// Observed says whether the manager knows of all that a worker's spec says.
func Observed(w *v1alpha1.WorkerCluster) bool { return w.Status.ObservedGeneration == w.Generation }

// Ready says whether a worker is connected, and new Jobs may go there with what fits known.
func Ready(w *v1alpha1.WorkerCluster) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady) &&
		meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionSchedulable)
}

// NotReady says whether a worker can't be used, for this reason.
func NotReady(reason string) func(*v1alpha1.WorkerCluster) bool {
	return func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
	}
}

// apis are clients of one API group, by hub and group.
var apis sync.Map

type apiOf struct {
	hub   *rig.Cluster
	group schema.GroupVersion
}

// API is a client of one API group on the hub that the manager knows.
func (f *Ferry) API(group schema.GroupVersion) rest.Interface {
	f.t.Helper()
	if api, ok := apis.Load(apiOf{f.Hub, group}); ok {
		return api.(rest.Interface)
	}
	config := rest.CopyConfig(f.Hub.RESTConfig())
	config.APIPath = "/apis"
	config.GroupVersion = &group
	config.NegotiatedSerializer = serializer.NewCodecFactory(manager.NewScheme()).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	api, err := rest.RESTClientFor(config)
	if err != nil {
		f.t.Fatal(err)
	}
	apis.Store(apiOf{f.Hub, group}, api)
	return api
}

// ReplaceSecret puts another kubeconfig into a registration Secret.
func (f *Ferry) ReplaceSecret(name string, kubeconfig []byte) {
	f.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig}})
	if err != nil {
		f.t.Fatal(err)
	}
	secrets := f.Hub.Client().CoreV1().Secrets(SystemNamespace)
	if _, err := secrets.Patch(f.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}
