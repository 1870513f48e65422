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
// Job has a key without a name. What an autoscaler may add is of the same moment as what is free.
// The caller adds what doesn't come from the Store: Preemption, and Volumes where the Job has
// claims.
func (s *Store) Snapshot(job types.NamespacedName, minor int, of *Autoscaler) *scheduling.Snapshot {
	free, room := s.grown(job, of)
	snapshot := *s.Bound.Snapshot(free, job)
	snapshot.Autoscaling = room
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

// Autoscaler is what is known of a worker's: what the WorkerCluster says of it, and what is
// observed. Both may be nil.
type Autoscaler struct {
	Spec     *v1alpha1.Autoscaling
	Observed *autoscaling.Observed
}

// rooms keeps the Room that was asked for last, as long as nothing that it's made of has changed.
// What is free on the nodes is no part of that.
type rooms struct {
	lock    sync.Mutex
	of      Autoscaler
	growth  *autoscaling.Growth
	nodes   *capacity.Capacity
	demands *capacity.Demands
	room    *autoscaling.Room
}

// Room is what the worker's autoscaler may still add, if one Job's Pods that wait there don't
// count; nil: nothing, or there is no Autoscaler.
func (s *Store) Room(job types.NamespacedName, of *Autoscaler) *autoscaling.Room {
	_, room := s.grown(job, of)
	return room
}

// grown is what is free for a Job, and what may be added.
func (s *Store) grown(job types.NamespacedName, of *Autoscaler) (free *capacity.Capacity, room *autoscaling.Room) {
	if of == nil {
		return s.Ledger.Free(job), nil
	}
	r := &s.rooms
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.growth == nil || r.of != *of {
		r.of = *of
		r.growth, r.room = autoscaling.GrowthOf(of.Spec, of.Observed), nil
	}
	if r.growth == nil {
		return s.Ledger.Free(job), nil
	}
	free, nodes, demands := s.Ledger.Growing(job)
	switch {
	case r.room == nil:
		r.room = autoscaling.NewRoom(r.growth, nodes.Nodes(), demands.List)
	case r.demands != demands || !nodes.HasNodesOf(r.nodes):
		r.room = r.room.With(nodes.Nodes(), demands.List)
	}
	r.nodes, r.demands = nodes, demands
	return free, r.room
}
