package carry

import (
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manyOwners is from how many owners on those that are spent are taken off.
const manyOwners = 100

// ownerPatch adds an owner, without a condition on the object's version: many Jobs that share it
// can do so at once. The list holds for as long as Jobs are kept, so those that have ended leave it
// when it's long.
func ownerPatch(object metav1.Object, r Rules) []byte {
	changes := []any{ownerOf(r.Mirror)} // the list is merged by uid
	if owners := object.GetOwnerReferences(); len(owners) >= manyOwners {
		for _, owner := range owners {
			if r.Finished(owner) {
				changes = append(changes, map[string]any{"$patch": "delete", "uid": owner.UID})
			}
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "ownerReferences": changes}})
	if err != nil {
		panic(err) // strings
	}
	return patch
}

// ownerOf is the reference of a copy to a mirror that uses it. There may be many: none is the
// controller, and none waits with its own deletion for the copy's.
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
