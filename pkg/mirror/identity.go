package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Ownership says whose a Job in a worker is.
type Ownership string

const (
	// Ours is the mirror of exactly this hub Job.
	Ours Ownership = "Ours"
	// OtherHubJob is a mirror of this origin that belongs to another hub Job of the same name: the
	// hub Job was deleted and created again. It's ours to remove.
	OtherHubJob Ownership = "OtherHubJob"
	// Foreign is a Job that's not of this origin. It's never touched.
	Foreign Ownership = "Foreign"
)

// Owns proves the ownership of a Job in a worker. Anything but Ours forbids writing to it; only
// Ours and OtherHubJob may be deleted, with a precondition on the UID that was looked at.
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

// HubUID returns the UID of the hub Job that a mirror stands for, or "".
func HubUID(mirror *batchv1.Job) types.UID {
	return types.UID(mirror.Annotations[v1alpha1.AnnotationHubUID])
}

// Claimed says whether a hub Job is Jobferry's to run.
func Claimed(hub *batchv1.Job) bool {
	return ptr.Deref(hub.Spec.ManagedBy, "") == v1alpha1.ManagedByDispatcher
}
