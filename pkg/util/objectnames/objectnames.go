// Package objectnames checks the names in an object of a worker as an API server would have when
// the object was written. A hostile API server can send any text as a name, and names are keys,
// are shown in terminals and are offered to shells.
//
// A check is a scan of bytes, since there is one for each Pod of each worker: the functions of
// k8s.io/apimachinery, with which the tests compare it, match regular expressions.
package objectnames

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// MaxUID bounds a UID: API servers make UUIDs of 36 bytes, but promise no form.
	MaxUID = 64
	// MaxVersion bounds a resourceVersion. API servers make numbers of some ten digits.
	MaxVersion = 128
)

// Valid reports whether an API server could store an object by the names in it: its own, its
// namespace's, its UID and version, those of its labels and annotations, and for a Pod or Job those
// of its containers and its node. There may be no namespace and no UID. Names are also
// the keys by which a Pod is compared with a node, and the resources that are looked up in a Pod,
// again and again.
func Valid(object metav1.Object) bool {
	if !isMeta(object) {
		return false
	}
	switch o := object.(type) {
	case *corev1.Pod:
		return isPodSpec(&o.Spec) && isScheduled(&o.Spec) && areStatuses(o.Status.InitContainerStatuses) && areStatuses(o.Status.ContainerStatuses) &&
			areStatuses(o.Status.EphemeralContainerStatuses)
	case *corev1.Node:
		return AreTaints(o.Spec.Taints)
	case *corev1.LimitRange:
		return !slices.ContainsFunc(o.Spec.Limits, hasBadResource)
	case *corev1.ResourceQuota:
		return areResources(o.Status.Hard) && areResources(o.Status.Used)
	case *nodev1.RuntimeClass:
		return isRuntimeClass(o)
	case *batchv1.Job:
		return isKeys(&o.Spec.Template) && isPodSpec(&o.Spec.Template.Spec)
	default:
		return true
	}
}

func isMeta(object metav1.Object) bool {
	name, namespace, uid := object.GetName(), object.GetNamespace(), string(object.GetUID())
	if _, is := object.(*storagev1.CSIDriver); is {
		name = strings.ToLower(name) // the one kind whose names may have capitals
	}
	return IsDNSSubdomain(name) && (namespace == "" || IsDNSLabel(namespace)) && len(uid) <= MaxUID && isPlain(uid) &&
		len(object.GetResourceVersion()) <= MaxVersion && isKeys(object)
}

// isKeys checks labels and annotations. The case of an annotation's prefix doesn't matter to API
// servers.
func isKeys(object metav1.Object) bool {
	if !AreLabels(object.GetLabels()) {
		return false
	}
	size := 0
	for key, value := range object.GetAnnotations() {
		if !IsLabelKey(key) && !IsLabelKey(strings.ToLower(key)) {
			return false
		}
		size += len(key) + len(value)
	}
	return size <= apivalidation.TotalAnnotationSizeLimitB
}

// AreLabels reports whether a node or Pod can have some labels.
func AreLabels(labels map[string]string) bool {
	for key, value := range labels {
		if !IsLabelKey(key) || !IsLabelValue(value) {
			return false
		}
	}
	return true
}

func isPodSpec(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if !IsDNSLabel(containers[i].Name) {
				return false
			}
		}
	}
	for i := range spec.EphemeralContainers {
		if !IsDNSLabel(spec.EphemeralContainers[i].Name) {
			return false
		}
	}
	return spec.NodeName == "" || IsDNSSubdomain(spec.NodeName)
}

func areStatuses(containers []corev1.ContainerStatus) bool {
	for i := range containers {
		if !IsDNSLabel(containers[i].Name) {
			return false
		}
	}
	return true
}

// IsPlain reports whether a text has only characters that neither a terminal obeys nor a shell
// expands: letters, digits, and - . _ / : as they are in names.
func IsPlain(text string) bool { return text != "" && isPlain(text) }

func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && c != '-' && c != '.' && c != '_' && c != '/' && c != ':' {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool { return isLower(c) || c >= 'A' && c <= 'Z' }

// IsDNSLabel reports whether a text is a DNS label.
func IsDNSLabel(text string) bool {
	return len(text) <= validation.DNS1123LabelMaxLength && IsDNSSubdomain(text) && !strings.Contains(text, ".")
}

// IsDNSSubdomain reports whether a text is DNS labels with dots between them, whatever their
// lengths.
func IsDNSSubdomain(text string) bool {
	if text == "" || len(text) > validation.DNS1123SubdomainMaxLength {
		return false
	}
	before := byte('.')
	for i := range len(text) {
		c := text[i]
		switch {
		case isLower(c):
		case c == '-' && before != '.':
		case c == '.' && isLower(before):
		default:
			return false
		}
		before = c
	}
	return isLower(before)
}

// IsLabelKey reports whether a text is the key of a label.
func IsLabelKey(key string) bool {
	if prefix, name, is := strings.Cut(key, "/"); is {
		return IsDNSSubdomain(prefix) && isWord(name)
	}
	return isWord(key)
}

// IsLabelValue reports whether a text is the value of a label.
func IsLabelValue(text string) bool { return text == "" || isWord(text) }

// AreLabelValues reports whether all of some texts are.
func AreLabelValues(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !IsLabelValue(text) })
}

// isWord reports whether a text is a key without a prefix, or the value of a label.
func isWord(text string) bool {
	if text == "" || len(text) > validation.LabelValueMaxLength || !isAlphanumeric(text[0]) || !isAlphanumeric(text[len(text)-1]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
