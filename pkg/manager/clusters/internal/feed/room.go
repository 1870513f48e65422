package feed

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/capacity"
)

// roomCache keeps what a worker's autoscaler may still add, as long as nothing has changed.
type roomCache struct {
	mu       sync.Mutex
	spec     *v1alpha1.Autoscaling
	observed *autoscaling.Observed
	growth   *autoscaling.Growth
	nodes    *capacity.Capacity
	demands  *capacity.Demands
	room     *autoscaling.Room
}

// Room is what the worker's autoscaler may still add, if one Job's Pods that wait there don't
// count; nil: nothing. No Job has the zero name.
func (f *Feed) Room(job types.NamespacedName, spec *v1alpha1.WorkerClusterSpec) *autoscaling.Room {
	if spec.Capacity != v1alpha1.CapacityAutoscaled {
		return nil
	}
	growth := f.room.growthOf(spec.Autoscaling, f.autoscaler.observed.Load())
	if growth == nil {
		return nil
	}
	ledger := f.Ledger()
	return f.room.of(growth, ledger.Free(types.NamespacedName{}), ledger.Demands(job))
}

func (c *roomCache) growthOf(spec *v1alpha1.Autoscaling, observed *autoscaling.Observed) *autoscaling.Growth {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.growth == nil || c.spec != spec || c.observed != observed {
		c.spec, c.observed, c.growth, c.room = spec, observed, autoscaling.GrowthOf(spec, observed), nil
	}
	return c.growth
}

func (c *roomCache) of(growth *autoscaling.Growth, nodes *capacity.Capacity, demands *capacity.Demands) *autoscaling.Room {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.growth != growth {
		return autoscaling.NewRoom(growth, nodes.Nodes(), demands.List) // it has just changed
	}
	if c.room == nil || c.nodes != nodes || c.demands != demands {
		c.nodes, c.demands, c.room = nodes, demands, autoscaling.NewRoom(growth, nodes.Nodes(), demands.List)
	}
	return c.room
}
