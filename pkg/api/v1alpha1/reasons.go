package v1alpha1

// EventController is the reporting controller of all events of the manager.
const EventController = "jobferry"

// Reasons of the events on hub Jobs.
const (
	EventPlaced          = "Placed"
	EventMirrored        = "Mirrored"
	EventMoved           = "Moved"
	EventMoving          = "Moving"
	EventPending         = "Pending"
	EventConflict        = "Conflict"
	EventMirrorRefused   = "MirrorRefused"
	EventForbidden       = "Forbidden"
	EventOutOfTouch      = "OutOfTouch"
	EventLost            = "Lost"
	EventRanTwice        = "RanTwice"
	EventConfirmed       = "Confirmed"
	EventDeferred        = "Deferred"
	EventStatusRejected  = "StatusRejected"
	EventDrift           = "Drift"
	EventMirrorRecreated = "MirrorRecreated"
	EventMirrorStopped   = "MirrorStopped"
	// EventProgressRestored: a worker has lost progress of a Job, and gets it back from the hub.
	EventProgressRestored = "ProgressRestored"
	EventPodsWaiting      = "PodsWaiting"
	EventSuspended        = "Suspended"
	EventResumed          = "Resumed"
	EventInvalid          = "InvalidAnnotation"
	EventNotDispatched    = "NamespaceNotDispatched"
	EventMirrorOrphaned   = "MirrorOrphaned"
	EventNotReleased      = "NotReleased"
	EventFailedCarry      = "FailedCarry"
	EventNotCarried       = "NotCarried"
	// EventPodNotShown: the hub's admission refuses the Pods that show the worker's.
	EventPodNotShown = "PodNotShown"
	// EventPodNotDeleted: a Pod was deleted on the hub, and the worker doesn't let that be done there.
	EventPodNotDeleted = "PodNotDeleted"
)

// Reasons of the condition Active of an AdmissionCheck.
const (
	// ReasonActive: every worker of the check can be used.
	ReasonActive = "Active"
	// ReasonSomeActive: some workers can be used.
	ReasonSomeActive = "SomeActiveClusters"
	// ReasonNoUsable: no worker can be used; Kueue reserves no quota for the queue meanwhile.
	ReasonNoUsable = "NoUsableClusters"
	// ReasonBadConfig: spec.parameters does not lead to a MultiKueueConfig.
	ReasonBadConfig = "BadConfig"
)

// Reasons of the condition TokenRenewed of a WorkerCluster.
const (
	// ReasonTokenValid: the token was renewed in time.
	ReasonTokenValid = "TokenValid"
	// ReasonRenewalFailed: the token couldn't be renewed so far.
	ReasonRenewalFailed = "RenewalFailed"
)

// ReasonUnsupportedSource of the condition Active of a MultiKueueCluster: the kubeconfig is neither
// in a Secret nor registered. Its other reasons are those of the WorkerCluster.
const ReasonUnsupportedSource = "UnsupportedClusterSource"

// Reasons of the condition ConditionJobFenced of a mirror.
const (
	// ReasonHubOutOfTouch: the Lease has expired, and the Job's Pods are stopped.
	ReasonHubOutOfTouch = "HubOutOfTouch"
	// ReasonConfirmed: the hub has confirmed that the Job continues here.
	ReasonConfirmed = "Confirmed"
)
