package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementAnswer says when a worker can run a Job.
type PlacementAnswer string

const (
	// PlacementFitsNow: the worker's scheduler finds nodes now for all Pods that must run at once.
	PlacementFitsNow PlacementAnswer = "FitsNow"
	// PlacementFitsAfterScaleUp: it will find them once the worker's autoscaler has added nodes.
	PlacementFitsAfterScaleUp PlacementAnswer = "FitsAfterScaleUp"
	// PlacementFitsLater: it will find them when Pods have ended, or nodes are back.
	PlacementFitsLater PlacementAnswer = "FitsLater"
	// PlacementNever: the worker's nodes, or the rules of its API server, never allow the Job.
	PlacementNever PlacementAnswer = "Never"
	// PlacementNotChecked: the worker takes the Job without a check of its capacity, which isn't
	// known, or isn't to be checked.
	PlacementNotChecked PlacementAnswer = "NotChecked"
	// PlacementExcluded: the worker doesn't take the Job, even if there is room.
	PlacementExcluded PlacementAnswer = "Excluded"
)

// PlacementExplanation says which workers could run a Job now, and why the others could not. It is
// the answer of the subresource jobs/why, and isn't stored.
//
// +kubebuilder:object:root=true
type PlacementExplanation struct {
	metav1.TypeMeta `json:",inline"`

	// namespace of the hub Job.
	Namespace string `json:"namespace"`
	// name of the hub Job.
	Name string `json:"name"`
	// time at which the manager looked at the workers.
	Time metav1.Time `json:"time"`
	// message is the answer in one line, as the event Pending has it.
	Message string `json:"message"`
	// podsWanted is how many Pods the Job would run at once.
	PodsWanted int64 `json:"podsWanted"`
	// waiting says where the Job is among those that wait for room; absent if it isn't among them.
	Waiting *WaitingExplanation `json:"waiting,omitempty"`
	// line are the Jobs of the namespace that wait for room, in order, 500 at most.
	Line []WaitingJob `json:"line,omitempty"`
	// workers, the best for the Job first.
	Workers []WorkerExplanation `json:"workers"`
	// omittedWorkers is how many workers aren't listed, because the answer would be too long.
	OmittedWorkers int `json:"omittedWorkers,omitempty"`
}

// WaitingExplanation says where a Job is among those that wait for room.
type WaitingExplanation struct {
	// place in the line, from 1.
	Place int `json:"place"`
	// of is how many Jobs wait.
	Of int `json:"of"`
	// worker where the Job will fit first; empty if none is reserved for it.
	Worker string `json:"worker,omitempty"`
	// expectedStart is when it will fit there; absent if that isn't known.
	ExpectedStart *metav1.Time `json:"expectedStart,omitempty"`
	// latest: it starts then at the latest, unless Jobs of higher priority take the room. Otherwise
	// some of what runs there has no deadline, and expectedStart is a guess.
	Latest bool `json:"latest,omitempty"`
}

// WaitingJob is a Job that waits for room.
type WaitingJob struct {
	// name of the Job.
	Name               string `json:"name"`
	WaitingExplanation `json:",inline"`
}

// WorkerExplanation says whether one worker could run the Job now, and why not.
type WorkerExplanation struct {
	// name of the WorkerCluster.
	Name string `json:"name"`
	// placed: the Job, or a shard of it, is placed on this worker. The other fields say what would
	// hold if it weren't: its own Pods don't count.
	Placed bool `json:"placed,omitempty"`
	// answer is FitsNow, FitsAfterScaleUp, FitsLater, Never, NotChecked or Excluded.
	Answer PlacementAnswer `json:"answer"`
	// reason names the manager's filter that the worker doesn't pass; empty if it passes all.
	Reason string `json:"reason,omitempty"`
	// message says why in words: where nodes are the reason, in those of kube-scheduler.
	Message string `json:"message"`
	// field of the Job that the filter reads, where it is one field.
	Field string `json:"field,omitempty"`
	// score decides between workers that fit: the higher is preferred. It is the share of the worker
	// that would stay free, times the worker's weight.
	Score string `json:"score,omitempty"`
	// costPerHour is what the Job's Pods cost there for an hour, if they all run; empty: the worker
	// has no prices. The cheaper worker is preferred to one with a higher score.
	CostPerHour string `json:"costPerHour,omitempty"`
	// podsNeeded is how many Pods must fit at once; absent if that wasn't checked.
	PodsNeeded *int64 `json:"podsNeeded,omitempty"`
	// podsNow is how many Pods would fit now; absent if that wasn't checked.
	PodsNow *int64 `json:"podsNow,omitempty"`
	// podsAfterScaleUp is how many Pods would fit once the worker's autoscaler has added nodes; absent
	// if it adds none for them.
	PodsAfterScaleUp *int64 `json:"podsAfterScaleUp,omitempty"`
	// nodes is how many nodes were looked at.
	Nodes int `json:"nodes,omitempty"`
	// nodeReasons counts the nodes by why they take no further Pod of the Job; each node counts once.
	NodeReasons []NodeReason `json:"nodeReasons,omitempty"`
	// shortages are the resources of which no node has enough for one Pod.
	Shortages []Shortage `json:"shortages,omitempty"`
}

// NodeReason is why some nodes take no further Pod.
type NodeReason struct {
	// plugin of kube-scheduler, or of the API server's admission.
	Plugin string `json:"plugin"`
	// message in the words of that plugin.
	Message string `json:"message"`
	// field of the Job that the plugin reads.
	Field string `json:"field,omitempty"`
	// nodes is how many nodes have this reason; none if it isn't a node's.
	Nodes int `json:"nodes,omitempty"`
}

// Shortage is a resource of which no node has enough for one Pod.
type Shortage struct {
	// resource is its name.
	Resource corev1.ResourceName `json:"resource"`
	// requested by each Pod.
	Requested resource.Quantity `json:"requested"`
	// most that a node has left, of those on which the Pod may be.
	Most resource.Quantity `json:"most"`
	// short is the difference.
	Short resource.Quantity `json:"short"`
}
