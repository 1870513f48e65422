package carry

import (
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// From manyOwners on, finished owners are removed. Each takes some work: ownersLookedAt, the
// oldest, are looked at each time.
const (
	manyOwners     = 100
	ownersLookedAt = 200
)

// ownerPatch adds an owner, whatever the object's version: many Jobs that share it may do so at
// once. From a long list it removes finished owners, which otherwise stay as long as their Jobs.
func ownerPatch(object metav1.Object, r Rules) []byte {
	changes := []any{ownerOf(r.Mirror)} // the list is merged by uid
	if owners := object.GetOwnerReferences(); len(owners) >= manyOwners {
		for _, owner := range owners[:min(len(owners), ownersLookedAt)] {
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

// ownerOf is the reference of a copy to one of the mirrors that use it. None of them is the
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
		object.SetOwnerReferences(append(slices.Clip(object.GetOwnerReferences()), ownerOf(m)))
	}
}
