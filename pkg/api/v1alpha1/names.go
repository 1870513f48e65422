package v1alpha1

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// This file is the contract between Jobferry's programs, and with its users: every label,
// annotation, finalizer, spec.managedBy value and namespace that they agree on. What the manager
// keeps of a hub Job is in package hubstate.

// KeyPrefix begins the keys of all labels and annotations of Jobferry's.
const KeyPrefix = "jobferry.dev/"

// SystemNamespace is the namespace of the manager on the hub, and of Jobferry's own objects in a
// worker: the ServiceAccount of the hub and the Leases of the fence.
const SystemNamespace = "jobferry-system"

// Values of spec.managedBy of a Job.
const (
	// ManagedByDispatcher on a hub Job assigns it to the dispatcher. It is also the
	// spec.controllerName of Kueue's AdmissionChecks that the dispatcher serves.
	ManagedByDispatcher = "jobferry.dev/dispatcher"
	// ManagedByWorker on a mirror assigns it to the embedded Job controller.
	ManagedByWorker = "jobferry.dev/worker"
)

// Names on hub Jobs that users set.
const (
	// AnnotationClusterSelector is a label selector over WorkerClusters.
	AnnotationClusterSelector = "jobferry.dev/cluster-selector"
	// AnnotationClusterPreference orders WorkerClusters in steps, each of which may open after a wait:
	// "tier=owned; region=eu after 5m; * after 30m". With "; return after 10m" a Job that runs goes
	// back to a worker of an earlier step. See package preference.
	AnnotationClusterPreference = "jobferry.dev/cluster-preference"
	// AnnotationOnClusterLost is Resume (default), Restart or Wait.
	AnnotationOnClusterLost = "jobferry.dev/on-cluster-lost"
	// AnnotationPodStartTimeout is how long a worker may have no running Pod of the Job before the Job
	// is moved to another, as a Go duration. Without it, the worker's spec.podStartTimeout counts.
	AnnotationPodStartTimeout = "jobferry.dev/pod-start-timeout"
	// AnnotationMaxClusters lets a Job run on several workers at once: on that many at most, or
	// MaxClustersAll. Without it a Job runs on one. See package shards.
	AnnotationMaxClusters = "jobferry.dev/max-clusters"
	// AnnotationGroup names a group of Jobs of a namespace, which run in one worker: a DNS label. See
	// package group.
	AnnotationGroup = "jobferry.dev/group"
	// AnnotationTraceParent is the W3C trace context of whoever creates the Job. The Job's own trace
	// has a link to it.
	AnnotationTraceParent = "jobferry.dev/traceparent"
	// LabelDispatch on a namespace of the hub has its Jobs dispatched: DispatchEnabled or
	// DispatchAllowed. Jobs of other namespaces are left alone.
	LabelDispatch = "jobferry.dev/dispatch"
	// LabelPods on a dispatched namespace, with PodsEnabled, has the Pods of its Jobs shown on the
	// hub.
	LabelPods = "jobferry.dev/pods"
)

// PodsEnabled is the value of LabelPods.
const PodsEnabled = "enabled"

// Values of LabelDispatch.
const (
	// DispatchEnabled: admission gives all new Jobs that name no controller to the dispatcher.
	DispatchEnabled = "enabled"
	// DispatchAllowed: only Jobs that name the dispatcher themselves are dispatched.
	DispatchAllowed = "allowed"
)

// MaxClustersAll as AnnotationMaxClusters: as many workers as there are.
const MaxClustersAll = "All"

// Values of AnnotationOnClusterLost.
const (
	// OnClusterLostResume continues the Job on another worker with the progress that it had.
	OnClusterLostResume = "Resume"
	// OnClusterLostRestart starts the Job on another worker from zero.
	OnClusterLostRestart = "Restart"
	// OnClusterLostWait keeps the Job on its worker until that is back.
	OnClusterLostWait = "Wait"
)

// Names on hub Jobs that the manager sets.
const (
	// FinalizerMirror keeps a hub Job until its mirror is gone.
	FinalizerMirror = "jobferry.dev/mirror"
)

// Names on Pods and events of a worker, as the API serves them.
const (
	// AnnotationCluster is the name of the worker.
	AnnotationCluster = "jobferry.dev/cluster"
)

// Names on the hub's Nodes that stand for workers, and on the Pods there that stand for a mirror's.
// LabelWorkerCluster on such a Node, and as the key of its taint, has the name of the worker.
const (
	// NodePrefix of a Node's name is before the worker's.
	NodePrefix = "jobferry-"
	// LabelShadow is "true" on a Pod that stands for one of a mirror.
	LabelShadow = "jobferry.dev/shadow"
	// AnnotationPodUID on such a Pod is the UID of the mirror's.
	AnnotationPodUID = "jobferry.dev/pod-uid"
)

// Names on mirrors.
const (
	// LabelOrigin holds the origin: the id of the hub that a mirror belongs to.
	LabelOrigin = "jobferry.dev/origin"
	// LabelMirrorID on the Pods of a mirror is what its selector asks for: each mirror has another
	// value, which begins with a digest of its origin, namespace and name.
	LabelMirrorID = "jobferry.dev/mirror-id"
	// FinalizerEnd keeps a mirror that has a TTL, which only a policy in the worker can have set,
	// until the hub knows how the Job has ended.
	FinalizerEnd = "jobferry.dev/end"
	// AnnotationHubUID holds the UID of the hub Job.
	AnnotationHubUID = "jobferry.dev/hub-uid"
	// AnnotationLeft is "true" on a Job that was a mirror, and that the hub has left to its worker.
	AnnotationLeft = "jobferry.dev/left"
	// AnnotationProjected holds the record of what was projected; see mirror.Drift.
	AnnotationProjected = "jobferry.dev/projected"
	// AnnotationFreshStart marks a mirror that takes the place of a moved Job's mirror and starts
	// from zero: the hub's counters are held until it has caught up.
	AnnotationFreshStart = "jobferry.dev/fresh-start"
	// AnnotationDeadlineSpent holds the seconds of activeDeadlineSeconds that a moved Job had used
	// before; they are subtracted from the mirror's deadline.
	AnnotationDeadlineSpent = "jobferry.dev/deadline-spent"
	// AnnotationFenced holds the time (RFC 3339) at which the embedded Job controller fenced the
	// mirror. The controller runs the mirror as if it were suspended for as long as the annotation
	// is there; the hub removes it from a mirror that is still placed there.
	AnnotationFenced = "jobferry.dev/fenced"
	// AnnotationIndexes on the mirror of a shard is the shard's part of the Job, in the form of
	// hubstate.Shards. The embedded Job controller starts no other index of an Indexed Job, and
	// follows a change while the Job runs. A mirror without it runs all of its Job.
	AnnotationIndexes = "jobferry.dev/indexes"
	// AnnotationIndexesObserved are the indexes that the embedded Job controller may run, by its own
	// word. It starts an index only after it has written it here, and takes an index out when it has
	// left AnnotationIndexes and has no Pod that isn't counted. The hub sets it as it creates the
	// mirror.
	AnnotationIndexesObserved = "jobferry.dev/indexes-observed"
	// ConditionJobFenced on a Job is True while its Pods are stopped because its hub has not
	// renewed the Lease. Suspended stays with spec.suspend, as the API server demands: the
	// startTime of a Job that is not suspended must not change.
	ConditionJobFenced batchv1.JobConditionType = "jobferry.dev/Fenced"
	// FinalizerJobTracking is the default finalizer on Pods that the embedded Job controller has
	// not counted yet.
	FinalizerJobTracking = "jobferry.dev/job-tracking"
)

// Names on the Leases of the fence, in the workers.
const (
	// AnnotationWorkerLostTimeout is the hub's time-out for this worker, as a Go duration. The hub
	// sets it.
	AnnotationWorkerLostTimeout = "jobferry.dev/worker-lost-timeout"
	// AnnotationFenceAfter is how long after the Lease's expiry the embedded Job controller fences
	// this hub's Jobs, as a Go duration. The controller sets it.
	AnnotationFenceAfter = "jobferry.dev/fence-after"
)

// Names on registration Secrets, and on the objects that a registration makes in a worker.
const (
	// LabelWorkerCluster with the value "true" makes a Secret in the manager's namespace a
	// registration.
	LabelWorkerCluster = "jobferry.dev/worker-cluster"
	// KubeconfigKey is the key of the kubeconfig in a registration Secret.
	KubeconfigKey = "kubeconfig"
	// FinalizerWorkerCluster keeps a registration Secret until its worker can be removed.
	FinalizerWorkerCluster = "jobferry.dev/worker-cluster"
	// AnnotationMultiKueueCluster names the MultiKueueCluster that a registration Secret was made
	// for. The manager stops updating a Secret that has lost this annotation.
	AnnotationMultiKueueCluster = "jobferry.dev/multikueue-cluster"
	// LabelMultiKueueKubeconfig with the value "true" on a Secret in Kueue's namespace lets the
	// manager register a worker with it. The manager takes no notice of others that a
	// MultiKueueCluster names.
	LabelMultiKueueKubeconfig = "jobferry.dev/multikueue-kubeconfig"
	// LabelHub, on objects in a worker, holds the UID of the hub that they are for.
	LabelHub = "jobferry.dev/hub"
	// AnnotationHubOrigin holds the origin of the hub, where it isn't the hub's UID.
	AnnotationHubOrigin = "jobferry.dev/hub-origin"
	// AnnotationNamespaces holds the namespaces of the worker in which the hub may have Jobs,
	// separated by commas; "*": all.
	AnnotationNamespaces = "jobferry.dev/namespaces"
	// AnnotationAccount holds the name of the hub's ServiceAccount in the worker.
	AnnotationAccount = "jobferry.dev/account"
	// AnnotationPodAccess holds the requested access to Pods, separated by commas.
	AnnotationPodAccess = "jobferry.dev/pod-access"
	// AnnotationTokenDuration holds the requested lifetime of the token, as a Go duration. The manager
	// renews the token of a Secret that has it.
	AnnotationTokenDuration = "jobferry.dev/token-duration"
)

// Origin is the id of one hub: by default the UID of its kube-system namespace.
type Origin string

// Validate returns why this can't be the origin of a hub. It is a label value, and a part of the
// name of a Lease.
func (o Origin) Validate() error {
	if problems := validation.IsDNS1123Label(string(o)); len(problems) > 0 {
		return fmt.Errorf("origin %q: %s", o, strings.Join(problems, "; "))
	}
	return nil
}

// Selector selects the mirrors of this origin in a worker.
func (o Origin) Selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{LabelOrigin: string(o)})
}

// FenceLease returns the name of the Lease of this origin in a worker, in SystemNamespace. The hub
// renews it; the embedded Job controller fences the origin's Jobs when it is not renewed. No origin
// makes it the name of another program's Lease.
func (o Origin) FenceLease() string { return "jobferry-fence-" + string(o) }

// WriterLease returns the name of the Lease in a worker, in SystemNamespace, that shows which of
// the managers of this origin writes there.
func (o Origin) WriterLease() string { return "jobferry-writer-" + string(o) }

// HubWriterLease is the name of the Lease on the hub, in the manager's namespace, that has the
// Terms of its leaders.
const HubWriterLease = "jobferry-writer"

// Annotations of those Leases: the Terms of a hub's leaders, a line each, and the one that renewed
// a worker's Lease last.
const (
	AnnotationTerms = "jobferry.dev/terms"
	AnnotationTerm  = "jobferry.dev/term"
)

// AnnotationTakeOverFrom of a WorkerCluster names the holder of the worker's Lease that an admin
// says isn't to be waited for: the manager of another hub with the same origin.
const AnnotationTakeOverFrom = "jobferry.dev/take-over-from"

// IsFenced reports whether the embedded Job controller has fenced a mirror.
func IsFenced(job *batchv1.Job) bool {
	_, fenced := job.Annotations[AnnotationFenced]
	return fenced
}
