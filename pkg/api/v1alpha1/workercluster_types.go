package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobController is the Job controller that runs the mirrors in a worker.
//
// +kubebuilder:validation:Enum=BuiltIn;Embedded
type JobController string

const (
	// JobControllerBuiltIn is the Job controller of the worker's own kube-controller-manager:
	// mirrors have no spec.managedBy.
	JobControllerBuiltIn JobController = "BuiltIn"
	// JobControllerEmbedded is jobferry-worker: mirrors have spec.managedBy jobferry.dev/worker.
	JobControllerEmbedded JobController = "Embedded"
)

// PreemptionMode says which Pods of a worker may be preempted for a Job that is placed there.
//
// +kubebuilder:validation:Enum=Never;LowerPriority
type PreemptionMode string

const (
	// PreemptionNever places Jobs where there is room beside what runs.
	PreemptionNever PreemptionMode = "Never"
	// PreemptionLowerPriority places Jobs also where there is room once the worker's scheduler has
	// preempted Pods of a lower priority.
	PreemptionLowerPriority PreemptionMode = "LowerPriority"
)

// CapacityMode says how the manager finds out what fits in a worker.
//
// +kubebuilder:validation:Enum=Nodes;Autoscaled;Unlimited
type CapacityMode string

const (
	// CapacityNodes counts what the worker's nodes can hold beside the Pods that run on them.
	CapacityNodes CapacityMode = "Nodes"
	// CapacityAutoscaled counts the nodes, too, that the worker's autoscaler can add.
	CapacityAutoscaled CapacityMode = "Autoscaled"
	// CapacityUnlimited skips the check of nodes and Pods: for workers whose nodes the manager may not
	// read. Claims are looked at all the same.
	CapacityUnlimited CapacityMode = "Unlimited"
)

// Autoscaling says which nodes a worker's autoscaler can add.
type Autoscaling struct {
	// nodeTemplates are the kinds of nodes that can be added.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	NodeTemplates []NodeTemplate `json:"nodeTemplates,omitempty"`

	// limits are what the worker's nodes may have together, those that there are included: an
	// amount for each resource that is limited.
	//
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// NodeTemplate is one kind of nodes that an autoscaler adds.
type NodeTemplate struct {
	// name of the node group, or of the NodePool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// allocatable is what a new node has for the Pods of Jobs: its allocatable less what DaemonSets
	// take. Without pods, it takes 110.
	//
	// +required
	Allocatable corev1.ResourceList `json:"allocatable"`

	// labels of such a node. A node that has all of them counts as one of this template; if it has
	// those of several, of the one with the most.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// taints of such a node that stay: not those that it has while it starts.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Taints []corev1.Taint `json:"taints,omitempty"`

	// maxNodes is how many such nodes the worker may have, those that there are included.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15000
	MaxNodes int32 `json:"maxNodes"`
}

// RemovalPolicy says what becomes of a worker's Jobs when its registration Secret is deleted. Until
// that is done, a finalizer keeps the Secret, and with it the credentials that the work needs.
//
// +kubebuilder:validation:Enum=Wait;Move;Orphan
type RemovalPolicy string

const (
	// RemovalWait places nothing more on the worker, and removes it when its last Job has finished.
	RemovalWait RemovalPolicy = "Wait"
	// RemovalMove ends the worker's unfinished Jobs, and places them on other workers.
	RemovalMove RemovalPolicy = "Move"
	// RemovalOrphan leaves the mirrors in the worker as they are, without the hub's label, and
	// removes the worker at once. Their hub Jobs are placed on other workers.
	RemovalOrphan RemovalPolicy = "Orphan"
)

// WorkerClusterSpec is how the admin wants a worker to be used.
type WorkerClusterSpec struct {
	// kubeconfigSecret is the name of the registration Secret, in the manager's namespace. It
	// cannot be changed: another cluster is another WorkerCluster.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="kubeconfigSecret is immutable: register the other cluster under its own name"
	KubeconfigSecret string `json:"kubeconfigSecret"`

	// jobController is the Job controller that runs the mirrors in this worker. A change applies to
	// mirrors created from then on.
	//
	// +optional
	// +kubebuilder:default=BuiltIn
	JobController JobController `json:"jobController,omitempty"`

	// cordoned keeps new Jobs away from this worker. Jobs that are placed here continue.
	//
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`

	// drain moves the unfinished Jobs placed here to other workers, with the progress that they
	// have made, and keeps new ones away. The mirror here has stopped before the Job starts
	// elsewhere. A Job that fits nowhere else continues here, and is tried again when a worker has
	// more free capacity. status.jobs is the number of Jobs that are left.
	//
	// +optional
	Drain bool `json:"drain,omitempty"`

	// workerLostTimeout is how long this worker may be not Ready before its Jobs continue
	// elsewhere; a Job's annotation jobferry.dev/on-cluster-lost says how. Not set: the manager's
	// flag --worker-lost-timeout, 15m by default. At least 1s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="workerLostTimeout must be at least 1s"
	WorkerLostTimeout *metav1.Duration `json:"workerLostTimeout,omitempty"`

	// weight multiplies this worker's score at placement: between two workers with the same free
	// share, the heavier one is preferred.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`

	// cost is what resources of this worker cost for an hour: a CPU, a GiB of memory, ephemeral
	// storage or huge pages, one of anything else. Between workers where a Job can start alike, the
	// cheaper one for its requests is preferred, whatever their scores. What isn't listed costs
	// nothing. The hub knows no currency: use the same one for all workers.
	//
	// +optional
	Cost Cost `json:"cost,omitempty"`

	// capacity says how the manager finds out what fits here.
	//
	// +optional
	// +kubebuilder:default=Nodes
	Capacity CapacityMode `json:"capacity,omitempty"`

	// autoscaling says which nodes the worker's autoscaler can add. Only capacity Autoscaled looks at
	// it.
	//
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// podStartTimeout is how long a Job that is placed here may have no running Pod before it's moved
	// to another worker; a Job's annotation jobferry.dev/pod-start-timeout says otherwise for that
	// Job. Not set: the manager's flag --stuck-timeout, 5m by default; with capacity Autoscaled 10m at
	// least. At least 1s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="podStartTimeout must be at least 1s"
	PodStartTimeout *metav1.Duration `json:"podStartTimeout,omitempty"`

	// preemption says whether a Job is placed here when its Pods fit only once the worker's scheduler
	// has preempted others, of a lower priority by the PriorityClasses of this worker. Of workers
	// where the Job fits now, those without preemption go first. Capacity Unlimited doesn't look at
	// it. Not set: Never.
	//
	// +optional
	Preemption PreemptionMode `json:"preemption,omitempty"`

	// namespaceSelector selects the namespaces of the hub whose Jobs this worker takes, by their
	// labels; kubernetes.io/metadata.name is the name. Not set: all namespaces that are dispatched. A
	// change applies to placements from then on: Jobs that are placed here stay.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="namespaceSelector: operator must be In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="namespaceSelector: operators In and NotIn need values, and Exists and DoesNotExist have none"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// createNamespaces lets the manager create, in this worker, the namespace of a Job that is
	// placed here.
	//
	// +optional
	// +kubebuilder:default=true
	CreateNamespaces *bool `json:"createNamespaces,omitempty"`

	// carry lists the kinds of objects that the manager copies along with a Job when its Pod
	// template refers to them. Empty: none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Carry []CarriedKind `json:"carry,omitempty"`

	// maxMirrors is how many Jobs of this hub this worker may have, those that have ended included.
	// At that number, no new Jobs are placed here. A quarter above it, the manager reads no more of
	// them, and the worker isn't Ready: it protects the manager's memory against a worker in which
	// somebody else creates Jobs with this hub's labels. Not set: 20000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxMirrors *int32 `json:"maxMirrors,omitempty"`

	// removalPolicy says what becomes of this worker's Jobs when its registration Secret is
	// deleted.
	//
	// +optional
	// +kubebuilder:default=Wait
	RemovalPolicy RemovalPolicy `json:"removalPolicy,omitempty"`
}

// CarriedKind is a kind of object that can be carried along with a Job.
//
// +kubebuilder:validation:Enum=ConfigMap;Secret;Service;ServiceAccount
type CarriedKind string

const (
	// CarryConfigMaps carries ConfigMaps.
	CarryConfigMaps CarriedKind = "ConfigMap"
	// CarrySecrets carries Secrets, except ServiceAccount tokens.
	CarrySecrets CarriedKind = "Secret"
	// CarryServiceAccounts carries ServiceAccounts: name and image pull secrets, not their
	// permissions.
	CarryServiceAccounts CarriedKind = "ServiceAccount"
	// CarryServices carries the headless Services by which Pods with a subdomain find each other.
	CarryServices CarriedKind = "Service"
)

// WorkerClusterStatus is what the manager knows of a worker.
type WorkerClusterStatus struct {
	// conditions are Ready, Schedulable, Lost, Exclusive, Fenced; of a worker whose clock was off,
	// ClockAgrees; and of a worker whose token the manager renews, TokenRenewed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// clusterUID is the UID of the worker's kube-system namespace: the proof that a rotated
	// kubeconfig still leads to the same cluster.
	//
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// kubernetesVersion is the version of the worker's API server.
	//
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// nodes is the number of the worker's schedulable nodes.
	//
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// jobs is the number of unfinished Jobs placed on this worker. While it's drained, those count,
	// too, whose Pods are still being stopped there.
	//
	// +optional
	Jobs int32 `json:"jobs"`

	// allocatable is what the worker's schedulable nodes offer together.
	//
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// requested is what the Pods on those nodes request together.
	//
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`

	// free is allocatable less requested.
	//
	// +optional
	Free corev1.ResourceList `json:"free,omitempty"`

	// stockouts are where Jobs aren't sent for a while, because no Pod like theirs started in time.
	// The manager continues with them after a restart.
	//
	// +optional
	// +listType=map
	// +listMapKey=shape
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=50
	Stockouts []Stockout `json:"stockouts,omitempty"`

	// lastContactTime is when the worker last answered before this status last changed. A newer
	// answer alone changes nothing here.
	//
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// MaxStockouts bounds the Stockouts in a WorkerCluster's status, as their MaxItems does.
const MaxStockouts = 50

// Stockout says that no Pod of some shape started in a worker in time.
type Stockout struct {
	// shape is a hash of what the scheduler looks at in such Pods.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	Shape string `json:"shape"`

	// failures is how often this happened in a row.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Failures int32 `json:"failures"`

	// until is when Jobs with such Pods may be sent there again.
	//
	// +required
	Until metav1.Time `json:"until"`

	// namespace is the namespace of the Jobs that aren't sent there. Empty: all namespaces, because
	// Jobs of several have failed. If there are too many, those of the namespace with the most are
	// dropped first.
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// trying is true while one Job is there to find out whether it's over.
	//
	// +optional
	Trying bool `json:"trying,omitempty"`
}

// WorkerCluster is a cluster that runs Jobs for the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=wc,categories=jobferry
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Jobs",type=integer,JSONPath=`.status.jobs`
// +kubebuilder:printcolumn:name="Free CPU",type=string,JSONPath=`.status.free.cpu`
// +kubebuilder:printcolumn:name="Free Memory",type=string,JSONPath=`.status.free.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Schedulable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Schedulable")].reason`
type WorkerCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec WorkerClusterSpec `json:"spec"`
	// +optional
	Status WorkerClusterStatus `json:"status,omitempty"`
}

// WorkerClusterList is a list of WorkerClusters.
//
// +kubebuilder:object:root=true
type WorkerClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WorkerCluster `json:"items"`
}
