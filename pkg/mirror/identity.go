package mirror

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Ownership is the relation of a Job in a worker to a hub Job.
type Ownership string

const (
	// Ours is the mirror of exactly this hub Job.
	Ours Ownership = "Ours"
	// OtherHubJob is a mirror of this origin that belongs to another hub Job of the same name: the
	// hub Job was deleted and created again. The manager removes it.
	OtherHubJob Ownership = "OtherHubJob"
	// Foreign is a Job that isn't of this origin. The manager never writes to it.
	Foreign Ownership = "Foreign"
)

// Owns returns the ownership of a Job in a worker. The manager writes only to Ours, and deletes
// only Ours and OtherHubJob, with the UID that it examined as a precondition.
func Owns(origin v1alpha1.Origin, hubUID types.UID, job *batchv1.Job) Ownership {
	uid := HubUID(job)
	switch {
	case origin == "" || job.Labels[v1alpha1.LabelOrigin] != string(origin) || uid == "":
		return Foreign
	case uid != hubUID:
		return OtherHubJob
	default:
		return Ours
	}
}

// IsUnmarked reports whether a Job in a worker is the mirror of a hub Job, and lacks a mark: it has
// the hub Job's UID, is known by its own, or was created with the hub Job's labels for its Pods,
// which nobody can change, and it has no mark of another Job or origin. No hub takes back what it
// has left to the worker.
func IsUnmarked(origin v1alpha1.Origin, hubUID types.UID, job *batchv1.Job, known []types.UID) bool {
	label, uid := job.Labels[v1alpha1.LabelOrigin], HubUID(job)
	if job.Annotations[v1alpha1.AnnotationLeft] != "" || label != "" && label != string(origin) || uid != "" && uid != hubUID {
		return false
	}
	return (label == "" || uid == "") && (uid != "" || slices.Contains(known, job.UID) || selectsFor(hubUID, job))
}

// HubUID returns the UID of the hub Job that a mirror belongs to, or "".
func HubUID(mirror *batchv1.Job) types.UID {
	return types.UID(mirror.Annotations[v1alpha1.AnnotationHubUID])
}

// Managed reports whether spec.managedBy of a hub Job names Jobferry.
func Managed(hub *batchv1.Job) bool {
	return deref(hub.Spec.ManagedBy) == v1alpha1.ManagedByDispatcher
}
