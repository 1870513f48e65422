package placement

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/objects"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// What is known of one worker.
type (
	// Store has what is watched in the worker, and makes Snapshots of it.
	Store = objects.Store
	// Ledger has the nodes of a Store, what is free there, and what is reserved for Jobs.
	Ledger = capacity.Ledger
	// Node is a node with what is free there.
	Node = capacity.Node
	// Resources are amounts of what a node has.
	Resources = capacity.Resources
	// Totals are sums over the nodes of a Ledger.
	Totals = capacity.Totals
	// Report says which Pods of a Job can't be scheduled in the worker.
	Report = capacity.Report
	// Snapshot is what the worker's API server and scheduler judge the Pods of one Job by. It
	// doesn't change.
	Snapshot = scheduling.Snapshot
)

// NewStore makes an empty Store. The callback must not block. It is called without locks held,
// after the first change of something that follows a read of it.
func NewStore(onChange func(Change)) *Store { return objects.New(onChange) }

// Slim keeps of a node or a Pod what a Store reads, and leaves other objects as they are.
func Slim(object any) (any, error) {
	if _, is := object.(*corev1.Node); is {
		return capacity.SlimNode(object)
	}
	return capacity.SlimPod(object)
}

// What the worker's autoscaler shows, and may still add.
type (
	// Autoscaler is what a WorkerCluster says of the autoscaler, and what is Observed.
	Autoscaler = objects.Autoscaler
	// Observed is what is observed of the autoscaler. It doesn't change.
	Observed = autoscaling.Observed
	// NodePools are Karpenter's, as far as they were read.
	NodePools = autoscaling.NodePools
	// NodeClaim is a node that Karpenter is about to make.
	NodeClaim = autoscaling.NodeClaim
	// Launches remembers which machines Karpenter couldn't get of late.
	Launches = autoscaling.Launches
	// Room is what may still be added. It doesn't change.
	Room = autoscaling.Room
)
