package carry

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// newCopy returns a new copy of a source, without an owner.
func newCopy(source Object, r Rules) Object {
	object := New(kindOf(source))
	object.SetNamespace(source.GetNamespace())
	object.SetName(source.GetName())
	stamp(object, source, r)
	setContent(object, source)
	return object
}

// updated returns a copy updated from its source. It keeps what others have added. It shares what
// it has with both: nobody changes them.
func updated(existing, source Object, r Rules) Object {
	object := shallow(existing)
	stamp(object, source, r)
	setContent(object, source)
	return object
}

func shallow(object Object) Object {
	to := New(kindOf(object))
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(object).Elem())
	return to
}

// kindOf is the name of the object's type, as in all of Kubernetes' packages.
func kindOf(object Object) Kind { return Kind(reflect.TypeOf(object).Elem().Name()) }

// stamp sets the metadata of a copy. It adds labels, and never removes any. Of annotations that are
// carried, a copy has just those of its source.
func stamp(object, source Object, r Rules) {
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, object.GetLabels())
	maps.Copy(labels, r.HubKeys.Projected(source.GetLabels()))
	maps.Copy(annotations, object.GetAnnotations())
	labels[v1alpha1.LabelOrigin] = string(r.Origin)
	if kindOf(source) == ServiceAccount {
		maps.DeleteFunc(annotations, func(key, _ string) bool { return r.AccountAnnotations.Has(key) })
		maps.Copy(annotations, r.annotations(source, true))
	}
	annotations[v1alpha1.AnnotationHubUID] = string(source.GetUID())
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// isCopy reports whether an object in a worker is a copy that this hub made.
func isCopy(object Object, origin v1alpha1.Origin) bool {
	return origin != "" && object.GetLabels()[v1alpha1.LabelOrigin] == string(origin) &&
		object.GetAnnotations()[v1alpha1.AnnotationHubUID] != ""
}

// setContent sets what is carried of a source.
func setContent(object, source Object) {
	switch to := object.(type) {
	case *corev1.ConfigMap:
		from := source.(*corev1.ConfigMap)
		to.Data, to.BinaryData, to.Immutable = from.Data, from.BinaryData, from.Immutable
	case *corev1.Secret:
		from := source.(*corev1.Secret)
		to.Type, to.Data, to.Immutable = from.Type, from.Data, from.Immutable
	case *corev1.Service:
		from := source.(*corev1.Service)
		to.Spec.ClusterIP, to.Spec.Selector = corev1.ClusterIPNone, from.Spec.Selector
		to.Spec.Ports, to.Spec.PublishNotReadyAddresses = from.Spec.Ports, from.Spec.PublishNotReadyAddresses
	case *corev1.ServiceAccount:
		from := source.(*corev1.ServiceAccount)
		to.AutomountServiceAccountToken = from.AutomountServiceAccountToken
		has := sets.New(to.ImagePullSecrets...) // a tenant may list very many
		to.ImagePullSecrets = slices.Clip(to.ImagePullSecrets)
		for _, secret := range from.ImagePullSecrets {
			if !has.Has(secret) {
				has.Insert(secret)
				to.ImagePullSecrets = append(to.ImagePullSecrets, secret)
			}
		}
	}
}

// sameContent reports whether an object has all that is carried of a source.
func sameContent(object, source Object) bool {
	would := shallow(object)
	setContent(would, source)
	return equality.Semantic.DeepEqual(would, object)
}

// isFixed reports whether the API server refuses to set the source's content.
func isFixed(object, source Object) bool {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return ptr.Deref(o.Immutable, false)
	case *corev1.Secret:
		return ptr.Deref(o.Immutable, false) || o.Type != source.(*corev1.Secret).Type
	case *corev1.Service:
		return o.Spec.ClusterIP != corev1.ClusterIPNone
	default:
		return false
	}
}
