package carry

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownerOf is the reference of a copy to a mirror that uses it. There may be many:
// none is the controller, and none waits with its own deletion for the copy's.
func ownerOf(m *batchv1.Job) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: batchv1.SchemeGroupVersion.String(),
		Kind:       "Job",
		Name:       m.Name,
		UID:        m.UID,
	}
}

func isOwner(m *batchv1.Job, object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == m.UID })
}

func addOwner(object metav1.Object, m *batchv1.Job) {
	if !isOwner(m, object) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), ownerOf(m)))
	}
}
