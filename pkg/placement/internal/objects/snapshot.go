package objects

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Snapshot is what the worker's API server, whose release is Kubernetes 1.minor, and its scheduler
// judge one Job's Pods by: neither what is reserved for the Job nor its own Pods are in its way. No
// Job has a key without a name. The caller adds what doesn't come from the Store: Preemption and
// Autoscaling, and Volumes where the Job has claims.
func (s *Store) Snapshot(job types.NamespacedName, minor int) *scheduling.Snapshot {
	snapshot := *s.Bound.Snapshot(s.Ledger.Free(job), job)
	snapshot.Namespaces = s.NamespaceLabels()
	snapshot.Admission = s.Admission(job.Namespace)
	if a := snapshot.Admission; len(a.Quotas) > 0 {
		a.Counted, a.Awaited = s.Ledger.Existing(job), s.Ledger.Awaited(job)
	}
	found, known := s.Devices(minor, s.Bound, job)
	if found != nil { // a nil of its type would be none
		snapshot.Devices = found
	}
	snapshot.DevicesUnknown = !known && minor >= devices.ExtendedSince
	return &snapshot
}

// rooms keeps the Room that was asked for last, as long as nothing that it's made of has changed.
type rooms struct {
	lock     sync.Mutex
	spec     *v1alpha1.Autoscaling
	observed *autoscaling.Observed
	growth   *autoscaling.Growth
	nodes    *capacity.Capacity
	demands  *capacity.Demands
	room     *autoscaling.Room
}

// Room is what the worker's autoscaler may still add, if one Job's Pods that wait there don't
// count; nil: nothing. It depends on what the WorkerCluster says of it, and on what is observed.
func (s *Store) Room(job types.NamespacedName, spec *v1alpha1.Autoscaling, observed *autoscaling.Observed) *autoscaling.Room {
	r := &s.rooms
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.growth == nil || r.spec != spec || r.observed != observed {
		r.spec, r.observed = spec, observed
		r.growth, r.room = autoscaling.GrowthOf(spec, observed), nil
	}
	if r.growth == nil {
		return nil
	}
	nodes, demands := s.Ledger.Free(types.NamespacedName{}), s.Ledger.Demands(job)
	if r.room == nil || r.nodes != nodes || r.demands != demands {
		r.nodes, r.demands, r.room = nodes, demands, autoscaling.NewRoom(r.growth, nodes.Nodes(), demands.List)
	}
	return r.room
}
