// Package objectnames checks the names in an object of a worker as an API server would have when
// the object was written. A hostile API server can send any text as a name, and names are shown in
// terminals and offered to shells.
package objectnames

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// maxUID bounds a UID: API servers make UUIDs of 36 bytes, but promise no form.
const maxUID = 128

// CheckPod returns an error if a Pod has a name that no API server stores: its own, its
// namespace's, its UID, those of its labels or annotations, its containers or its node.
func CheckPod(pod *corev1.Pod) error {
	if err := CheckMeta(pod); err != nil {
		return err
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if err := isLabel("container", containers[i].Name); err != nil {
				return err
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if err := isLabel("container", pod.Spec.EphemeralContainers[i].Name); err != nil {
			return err
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			if err := isLabel("container", statuses[i].Name); err != nil {
				return err
			}
		}
	}
	if node := pod.Spec.NodeName; node != "" {
		return first("node", node, validation.NameIsDNSSubdomain(node, false))
	}
	return nil
}

// CheckMeta checks an object's own name, its namespace's, its UID, and the keys of its labels and
// annotations. Names are those of Pods and the like: DNS subdomains. There may be no namespace and
// no UID.
func CheckMeta(object metav1.Object) error {
	if err := first("name", object.GetName(), validation.NameIsDNSSubdomain(object.GetName(), false)); err != nil {
		return err
	}
	if namespace := object.GetNamespace(); namespace != "" {
		if err := isLabel("namespace", namespace); err != nil {
			return err
		}
	}
	if uid := string(object.GetUID()); len(uid) > maxUID || !isPlain(uid) {
		return malformed("UID", uid)
	}
	for key, value := range object.GetLabels() {
		if err := first("label", key, utilvalidation.IsQualifiedName(key)); err != nil {
			return err
		}
		if err := first("label value", value, utilvalidation.IsValidLabelValue(value)); err != nil {
			return err
		}
	}
	for key := range object.GetAnnotations() {
		if err := first("annotation", key, utilvalidation.IsQualifiedName(key)); err != nil {
			return err
		}
	}
	return nil
}

// IsPlain reports whether a text has only characters that neither a terminal obeys nor a shell
// expands: letters, digits, and - . _ / : as they are in names.
func IsPlain(text string) bool { return text != "" && isPlain(text) }

func isPlain(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '.', c == '_', c == '/', c == ':':
		default:
			return false
		}
	}
	return true
}

func isLabel(what, name string) error { return first(what, name, utilvalidation.IsDNS1123Label(name)) }

func first(what, name string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return malformed(what, name)
}

// malformed quotes the start of a name.
func malformed(what, name string) error {
	return fmt.Errorf("no API server stores the %s %q", what, name[:min(len(name), 64)])
}
