package feed

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

// Worker is what Free has to know of the worker beside what is fed.
type Worker struct {
	Spec v1alpha1.WorkerClusterSpec
	// Minor is the version of Kubernetes, 1.Minor; zero: unknown, and taken for an old one.
	Minor int
	// Known: the State was, that is to be judged by.
	Known bool
}

// Free is what the worker's API server and scheduler judge one Job's Pods by: neither what is held
// for the Job nor its own Pods are in its way. Without a name, they are for any Job of the
// namespace. It is nil if nothing is known that matters. What not every Job reads is gathered from
// the first one on that does.
func (f *Feed) Free(job types.NamespacedName, reads placement.Reads, w Worker) *placement.Snapshot {
	store := f.capacity.store
	var free *placement.Snapshot
	if w.Known {
		free = store.Snapshot(job, w.Minor, f.autoscalerOf(&w.Spec))
		free.Preemption = w.Spec.Preemption == v1alpha1.PreemptionLowerPriority
		if (reads.Namespaces || store.Bound.SelectNamespaces()) && f.capacity.namespaces.ask() {
			free.AwaitNamespaces()
		}
	}
	if !reads.Claims {
		return free
	}
	if free == nil {
		free = &placement.Snapshot{NodesUnknown: true}
	}
	if f.capacity.volumes.ask() {
		free.AwaitVolumes()
		return free
	}
	free.Volumes = store.Volumes()
	return free
}

// Room is what the worker's autoscaler may still add, if one Job's Pods that wait there don't
// count; nil: nothing. No Job has the zero name.
func (f *Feed) Room(job types.NamespacedName, spec *v1alpha1.WorkerClusterSpec) *placement.Room {
	return f.capacity.store.Room(job, f.autoscalerOf(spec))
}

// autoscalerOf is what is known of the worker's autoscaler; nil: it's said to have none.
func (f *Feed) autoscalerOf(spec *v1alpha1.WorkerClusterSpec) *placement.Autoscaler {
	if spec.Capacity != v1alpha1.CapacityAutoscaled {
		return nil
	}
	return &placement.Autoscaler{Spec: spec.Autoscaling, Observed: f.autoscaler.observed.Load()}
}
