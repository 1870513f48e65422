package carry

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// defaultServiceAccount exists in every namespace, also in the worker.
const defaultServiceAccount = "default"

// References returns what the Pods of a template need of the kinds that can be carried, each object
// once, sorted by kind and name. Of a kind with more than MaxReferences, it returns one more than
// that.
func References(template *corev1.PodTemplateSpec) []Ref {
	spec, refs := template.Spec, newRefSet()
	if spec.ServiceAccountName != defaultServiceAccount {
		refs.add(ServiceAccount, spec.ServiceAccountName, false)
	}
	refs.add(Service, spec.Subdomain, true) // Pods start without it, on the hub, too
	refs.addPullSecrets(spec.ImagePullSecrets)
	spec.ImagePullSecrets = nil
	refs.visit(reflect.ValueOf(&spec))
	return refs.sorted()
}

// PullSecrets returns a ServiceAccount's imagePullSecrets.
func PullSecrets(account *corev1.ServiceAccount) []Ref {
	refs := newRefSet()
	refs.addPullSecrets(account.ImagePullSecrets)
	return refs.sorted()
}

// addPullSecrets adds optional references: the kubelet pulls without missing ones.
func (s refSet) addPullSecrets(secrets []corev1.LocalObjectReference) {
	for _, secret := range secrets {
		s.add(Secret, secret.Name, true)
	}
}

// visit adds the references in a part of a Pod's spec, of all containers and volumes, by their
// types.
func (s refSet) visit(part reflect.Value) {
	switch part.Kind() {
	case reflect.Pointer:
		if !part.IsNil() && !s.addOf(part.Interface()) {
			s.visit(part.Elem())
		}
	case reflect.Slice:
		for i := range part.Len() {
			s.visit(part.Index(i))
		}
	case reflect.Struct:
		for _, i := range leading[part.Type()] {
			switch field := part.Field(i); field.Kind() {
			case reflect.Struct:
				s.visit(field.Addr())
			default:
				s.visit(field)
			}
		}
	default: // a leaf, or a map, which has none
	}
}

// leading has, by the types of structs in a Pod's spec, the fields in which there may be a
// reference: a Pod may have 100,000 volumes and containers, whose other fields aren't looked at.
var leading = leadingIn(reflect.TypeFor[corev1.PodSpec]())

func leadingIn(spec reflect.Type) map[reflect.Type][]int {
	all := map[reflect.Type][]int{}
	var leads func(reflect.Type) bool
	leads = func(t reflect.Type) bool {
		switch t.Kind() {
		case reflect.Slice, reflect.Pointer:
			return leads(t.Elem())
		case reflect.Struct:
			if isRef := newRefSet().addOf(reflect.New(t).Interface()); isRef {
				return true
			}
			fields, known := all[t]
			if !known {
				for i := range t.NumField() {
					if field := t.Field(i); field.IsExported() && leads(field.Type) {
						fields = append(fields, i)
					}
				}
				all[t] = fields
			}
			return len(fields) > 0
		default:
			return false
		}
	}
	leads(spec)
	return all
}

// addOf adds what is a reference itself, and reports whether it's one.
func (s refSet) addOf(part any) bool {
	switch r := part.(type) {
	case *corev1.ConfigMapEnvSource:
		s.add(ConfigMap, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.ConfigMapKeySelector:
		s.add(ConfigMap, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.ConfigMapVolumeSource:
		s.add(ConfigMap, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.ConfigMapProjection:
		s.add(ConfigMap, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.SecretEnvSource:
		s.add(Secret, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.SecretKeySelector:
		s.add(Secret, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.SecretVolumeSource:
		s.add(Secret, r.SecretName, ptr.Deref(r.Optional, false))
	case *corev1.SecretProjection:
		s.add(Secret, r.Name, ptr.Deref(r.Optional, false))
	case *corev1.AzureFileVolumeSource:
		s.add(Secret, r.SecretName, false)
	case *corev1.LocalObjectReference: // that a volume's driver is given
		s.add(Secret, r.Name, false)
	default:
		return false
	}
	return true
}
