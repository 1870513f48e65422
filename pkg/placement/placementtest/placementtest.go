// Package placementtest builds Jobs, nodes and what else workers have for the tests of those who
// use pkg/placement.
package placementtest

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// NewNode has 4 CPUs, 16Gi of memory and place for 110 Pods, all free.
func NewNode(name string) *capacitytest.NodeBuilder { return capacitytest.NewNode(name) }

// NewJob is one Pod, run once, that asks for nothing.
func NewJob(name string) *capacitytest.JobBuilder { return capacitytest.NewJob(name) }

// NodeAffinity is that of Pods which need a node that one of some terms selects.
func NodeAffinity(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return capacitytest.NodeAffinity(terms...)
}

// NodeTerm selects nodes by one label.
func NodeTerm(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return capacitytest.NodeTerm(key, operator, values...)
}

// Quantities reads pairs of a resource's name and a quantity: "cpu", "2", "memory", "4Gi".
func Quantities(pairs ...string) corev1.ResourceList { return capacitytest.Quantities(pairs...) }

// ResourcesOf are those of a list.
func ResourcesOf(list corev1.ResourceList) placement.Resources { return capacity.ResourcesOf(list) }

// Tests that make a Snapshot need types of what it has.
type (
	// Admission is what its API server admits.
	Admission = scheduling.Admission
	// Devices are what its claims can get.
	Devices = scheduling.Devices
	// DeviceObjects are what NewDevices reads.
	DeviceObjects = devices.Objects
	// Volumes are its claims, classes and drivers.
	Volumes = scheduling.Volumes
)

// NewDevices are those of a worker with some objects.
func NewDevices(objects DeviceObjects) Devices { return devices.New(objects) }

// MaxPools bounds the NodePools of a worker.
const MaxPools = autoscaling.MaxPools

// FailedClaim is a NodeClaim of a NodePool that was deleted without ever having had a machine.
func FailedClaim(pool string, deleted time.Time) *placement.NodeClaim {
	return &placement.NodeClaim{Offers: autoscaling.Offers{Pool: pool}, Outcome: autoscaling.Failed, Deleted: deleted}
}

// MadeClaim is a NodeClaim of a NodePool that has got its machine.
func MadeClaim(pool string) *placement.NodeClaim {
	return &placement.NodeClaim{Offers: autoscaling.Offers{Pool: pool}, Outcome: autoscaling.Made}
}
