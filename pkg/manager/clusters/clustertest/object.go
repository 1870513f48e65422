package clustertest

import (
	"encoding/json"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is one of Kubernetes' own.
type Object interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// kinds that a worker serves, by their resources.
var kinds = map[string]schema.GroupVersionKind{
	"jobs":                   batchv1.SchemeGroupVersion.WithKind("Job"),
	"nodes":                  corev1.SchemeGroupVersion.WithKind("Node"),
	"pods":                   corev1.SchemeGroupVersion.WithKind("Pod"),
	"namespaces":             corev1.SchemeGroupVersion.WithKind("Namespace"),
	"events":                 corev1.SchemeGroupVersion.WithKind("Event"),
	"configmaps":             corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	"secrets":                corev1.SchemeGroupVersion.WithKind("Secret"),
	"serviceaccounts":        corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	"limitranges":            corev1.SchemeGroupVersion.WithKind("LimitRange"),
	"resourcequotas":         corev1.SchemeGroupVersion.WithKind("ResourceQuota"),
	"persistentvolumeclaims": corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	"persistentvolumes":      corev1.SchemeGroupVersion.WithKind("PersistentVolume"),
	"storageclasses":         storagev1.SchemeGroupVersion.WithKind("StorageClass"),
	"csinodes":               storagev1.SchemeGroupVersion.WithKind("CSINode"),
	"csidrivers":             storagev1.SchemeGroupVersion.WithKind("CSIDriver"),
	"csistoragecapacities":   storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"),
	"leases":                 coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	"priorityclasses":        schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
	"runtimeclasses":         nodev1.SchemeGroupVersion.WithKind("RuntimeClass"),
	"deviceclasses":          resourcev1.SchemeGroupVersion.WithKind("DeviceClass"),
	"resourceslices":         resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"),
	"resourceclaims":         resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"),
	"resourceclaimtemplates": resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate"),
}

// stored is one version of an object.
type stored struct {
	kind    schema.GroupVersionKind
	name    types.NamespacedName
	version uint64
	raw     []byte // in protobuf, without the envelope
	labels  labels.Set
	fields  fields.Set
}

// newStored gives an object its version.
func newStored(kind schema.GroupVersionKind, o Object, version uint64) *stored {
	o.SetResourceVersion(strconv.FormatUint(version, 10))
	raw, err := o.Marshal()
	if err != nil {
		panic(err) // Kubernetes' own types can be encoded
	}
	s := &stored{
		kind: kind, name: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, version: version, raw: raw,
		labels: o.GetLabels(), fields: fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()},
	}
	if pod, is := o.(*corev1.Pod); is {
		s.fields["status.phase"], s.fields["spec.nodeName"] = string(pod.Status.Phase), pod.Spec.NodeName
	}
	return s
}

// newObject makes an empty object of a kind.
func newObject(kind schema.GroupVersionKind) Object {
	made, err := scheme.Scheme.New(kind)
	o, is := made.(Object)
	if err != nil || !is {
		panic(fmt.Sprintf("%s is no kind of Kubernetes: %v", kind, err))
	}
	return o
}

// object decodes it.
func (s *stored) object() Object {
	o := newObject(s.kind)
	if err := o.Unmarshal(s.raw); err != nil {
		panic(err) // it was encoded by newStored
	}
	return o
}

// magic begins each object in protobuf.
const magic = "k8s\x00"

// protobuf is the object as it's sent by itself or in a watch.
func (s *stored) protobuf() []byte { return enveloped(s.kind, s.raw) }

func enveloped(kind schema.GroupVersionKind, raw []byte) []byte {
	version, name := kind.ToAPIVersionAndKind()
	sent, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: name}, Raw: raw}).Marshal()
	if err != nil {
		panic(err) // it has two strings and bytes
	}
	return append([]byte(magic), sent...)
}

// json is the same for clients that don't read protobuf.
func (s *stored) json() []byte {
	o := s.object()
	o.GetObjectKind().SetGroupVersionKind(s.kind)
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // Kubernetes' own types can be encoded
	}
	return text
}
