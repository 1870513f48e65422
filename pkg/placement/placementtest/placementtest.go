// Package placementtest builds Jobs and nodes for the tests of those who use pkg/placement.
package placementtest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// NewNode has 4 CPUs, 16Gi of memory and place for 110 Pods, all free.
func NewNode(name string) *capacitytest.NodeBuilder { return capacitytest.NewNode(name) }

// NewJob is one Pod, run once, that asks for nothing.
func NewJob(name string) *capacitytest.JobBuilder { return capacitytest.NewJob(name) }

// Quantities reads pairs of a resource's name and a quantity: "cpu", "2", "memory", "4Gi".
func Quantities(pairs ...string) corev1.ResourceList { return capacitytest.Quantities(pairs...) }
