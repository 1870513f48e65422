package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Values of spec.managedBy.
const (
	// ManagedByDispatcher on a hub Job claims it for Jobferry.
	ManagedByDispatcher = "jobferry.dev/dispatcher"
	// ManagedByWorker on a mirror claims it for the embedded Job controller.
	ManagedByWorker = "jobferry.dev/worker"
)

// Names on hub Jobs.
const (
	// Finalizer keeps a hub Job until its mirror is gone.
	Finalizer = "jobferry.dev/mirror"
	// AnnotationCluster is the placement: the name of the worker. Jobferry sets it.
	AnnotationCluster = "jobferry.dev/cluster"
	// AnnotationMovedFrom is the worker that the Job was placed on before: until that
	// has no copy of it any more, the Job starts nowhere else. Jobferry sets it.
	AnnotationMovedFrom = "jobferry.dev/moved-from"
	// AnnotationMovedAt is when that was (RFC 3339), and AnnotationMovedWith what the
	// hub knew of the Job's progress then. Jobferry sets them.
	AnnotationMovedAt   = "jobferry.dev/moved-at"
	AnnotationMovedWith = "jobferry.dev/moved-with"
	// AnnotationPlacedFor is the cluster selector that the Job was placed by: another
	// one moves it, other labels of the worker don't. Jobferry sets it.
	AnnotationPlacedFor = "jobferry.dev/placed-for"
	// AnnotationClusterSelector is a label selector over WorkerClusters. Users set it.
	AnnotationClusterSelector = "jobferry.dev/cluster-selector"
	// AnnotationOnClusterLost is Resume (default), Restart or Wait. Users set it.
	AnnotationOnClusterLost = "jobferry.dev/on-cluster-lost"
	// LabelDispatch with the value "enabled" on a namespace opts its Jobs in.
	LabelDispatch = "jobferry.dev/dispatch"
)

// Values of AnnotationOnClusterLost.
const (
	// OnClusterLostResume lets the Job go on elsewhere with the progress it had.
	OnClusterLostResume = "Resume"
	// OnClusterLostRestart lets it start elsewhere from zero.
	OnClusterLostRestart = "Restart"
	// OnClusterLostWait keeps it where it is, until the worker is back.
	OnClusterLostWait = "Wait"
)

// Names on mirrors.
const (
	// LabelOrigin holds the origin: the id of the hub that a mirror belongs to.
	LabelOrigin = "jobferry.dev/origin"
	// AnnotationHubUID holds the UID of the hub Job.
	AnnotationHubUID = "jobferry.dev/hub-uid"
	// AnnotationProjected holds the record of what was projected; see Drift.
	AnnotationProjected = "jobferry.dev/projected"
	// AnnotationFreshStart marks a mirror that takes a moved Job's place and starts
	// from zero: until it has caught up, the hub's counters are held. On a hub Job, its
	// mirrors do so.
	AnnotationFreshStart = "jobferry.dev/fresh-start"
	// AnnotationDeadlineSpent holds the seconds of activeDeadlineSeconds that a
	// moved Job had used before; they're taken off the mirror's deadline. On a hub Job,
	// it's those until its last move.
	AnnotationDeadlineSpent = "jobferry.dev/deadline-spent"
	// AnnotationCarry lists the kinds of objects that are carried along with the
	// mirror, separated by commas; see pkg/manager/carry.
	AnnotationCarry = "jobferry.dev/carry"
)

// Origin is the id of one hub: by default the UID of its kube-system namespace.
// It must be a valid label value.
type Origin string

// Selector selects the mirrors of this origin in a worker.
func (o Origin) Selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{LabelOrigin: string(o)})
}

// Ownership says whose a Job in a worker is.
type Ownership string

const (
	// Ours is the mirror of exactly this hub Job.
	Ours Ownership = "Ours"
	// OtherHubJob is a mirror of this origin that belongs to another hub Job of the
	// same name: the hub Job was deleted and created again. It's ours to remove.
	OtherHubJob Ownership = "OtherHubJob"
	// Foreign is a Job that's not of this origin. It's never touched.
	Foreign Ownership = "Foreign"
)

// Owns proves the ownership of a Job in a worker. Anything but Ours forbids
// writing to it; only Ours and OtherHubJob may be deleted, with a precondition
// on the UID that was looked at.
func Owns(origin Origin, hubUID types.UID, job *batchv1.Job) Ownership {
	uid := HubUID(job)
	switch {
	case origin == "" || job.Labels[LabelOrigin] != string(origin) || uid == "":
		return Foreign
	case uid != hubUID:
		return OtherHubJob
	default:
		return Ours
	}
}

// HubUID returns the UID of the hub Job that a mirror stands for, or "".
func HubUID(mirror *batchv1.Job) types.UID {
	return types.UID(mirror.Annotations[AnnotationHubUID])
}

// Claimed says whether a hub Job is Jobferry's to run.
func Claimed(hub *batchv1.Job) bool {
	return ptr.Deref(hub.Spec.ManagedBy, "") == ManagedByDispatcher
}
