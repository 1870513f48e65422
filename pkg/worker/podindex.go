package worker

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// controllerIndex finds Pods by their namespace and the UID of the Job that controls them, and
// those without a controller by their namespace, and by the UID of the Job that their label says is
// to adopt them.
const controllerIndex = "jobferry.dev/controller"

// podIndex finds the Pods to which indexPod gives a value. They belong to the cache and must not be
// changed.
type podIndex interface {
	podsBy(value string) ([]*corev1.Pod, error)
	// pod returns the Pod of that name, nil if there's none that a Job could own.
	pod(name types.NamespacedName) (*corev1.Pod, error)
}

// asPod returns what the cache has as a Pod; nil: one that slimming has reduced to metadata.
func asPod(object any) *corev1.Pod {
	p, _ := object.(*corev1.Pod)
	return p
}

// indexPod returns the Pod's value in controllerIndex; none for a Pod that no Job can ever own.
func indexPod(o client.Object) []string {
	if metav1.GetControllerOfNoCopy(o) == nil {
		all := withoutController(o.GetNamespace(), "")
		if uid := o.GetLabels()[batchv1.ControllerUidLabel]; uid != "" {
			return []string{all, withoutController(o.GetNamespace(), uid)}
		}
		return []string{all}
	}
	if ref := jobRef(o); ref != nil {
		return []string{controlledBy(o.GetNamespace(), ref.UID)}
	}
	return nil
}

// withoutController is the value of the namespace's Pods without a controller, whose label has a
// UID; empty: of all of them. No UID has a slash.
func withoutController(namespace, uid string) string { return namespace + "/" + uid }

// controlledBy is the value of the Pods that a Job of the namespace controls.
func controlledBy(namespace string, job types.UID) string { return namespace + "//" + string(job) }

// jobRef returns the reference to the Job that controls the object, nil if none does. Other API
// groups have a kind Job, too.
func jobRef(o client.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != "Job" || ref.APIVersion != batchv1.SchemeGroupVersion.String() || ref.Size() > mirror.MaxHeldOwner {
		return nil
	}
	return ref
}

// indexedPods is an informer's index. A controller-runtime client would copy each Pod out of it,
// and its indexes would have two more entries of each.
type indexedPods struct{ toolscache.Indexer }

func (i indexedPods) podsBy(value string) ([]*corev1.Pod, error) {
	objects, err := i.ByIndex(controllerIndex, value)
	if err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods, nil
}

func (i indexedPods) pod(name types.NamespacedName) (*corev1.Pod, error) {
	object, _, err := i.GetByKey(name.String())
	return asPod(object), err
}

// podIndexers has an informer keep controllerIndex.
var podIndexers = toolscache.Indexers{controllerIndex: func(object any) ([]string, error) {
	if p := asPod(object); p != nil {
		return indexPod(p), nil
	}
	return nil, nil
}}
