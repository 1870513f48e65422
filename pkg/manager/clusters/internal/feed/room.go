package feed

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

// roomCache keeps what a worker's autoscaler may still add, as long as nothing has changed.
type roomCache struct {
	mu       sync.Mutex
	spec     *v1alpha1.Autoscaling
	observed *placement.Observed
	growth   *placement.Growth
	nodes    *placement.Capacity
	demands  *placement.Demands
	room     *placement.Room
}

// Room is what the worker's autoscaler may still add, if one Job's Pods that wait there don't
// count; nil: nothing. No Job has the zero name.
func (f *Feed) Room(job types.NamespacedName, spec *v1alpha1.WorkerClusterSpec) *placement.Room {
	if spec.Capacity != v1alpha1.CapacityAutoscaled {
		return nil
	}
	observed, ledger := f.autoscaler.observed.Load(), f.Ledger()
	c := &f.room
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.growth == nil || c.spec != spec.Autoscaling || c.observed != observed {
		c.spec, c.observed = spec.Autoscaling, observed
		c.growth, c.room = placement.GrowthOf(spec.Autoscaling, observed), nil
	}
	if c.growth == nil {
		return nil
	}
	nodes, demands := ledger.Free(types.NamespacedName{}), ledger.Demands(job)
	if c.room == nil || c.nodes != nodes || c.demands != demands {
		c.nodes, c.demands, c.room = nodes, demands, placement.NewRoom(c.growth, nodes.Nodes(), demands.List)
	}
	return c.room
}
