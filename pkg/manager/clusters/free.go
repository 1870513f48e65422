package clusters

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/devices"
	"github.com/jobferry/jobferry/pkg/placement/scheduling"
)

// Free is what the worker's API server and scheduler judge one Job's Pods by: neither what is held for
// the Job nor its own Pods are in its way. Without a name, they are for any Job of the namespace. It is nil
// if nothing is known that matters. What not every Job reads is gathered from the first one on that does.
func (w *Worker) Free(job types.NamespacedName, reads scheduling.Reads) *scheduling.Snapshot {
	var free *scheduling.Snapshot
	if w.View().Capacity.Known {
		free = w.counted(job)
		if (reads.Namespaces || w.capacity.bound.SelectNamespaces()) && w.capacity.namespaces.ask() {
			free.Listing = &scheduling.NamespacesListing
		}
	}
	if !reads.Claims {
		return free
	}
	if free == nil {
		free = &scheduling.Snapshot{NodesUnknown: true}
	}
	if w.capacity.volumes.ask() {
		free.Listing = &scheduling.VolumesListing
		return free
	}
	free.Volumes = w.capacity.objects.Volumes()
	return free
}

// counted is what is known of a worker whose capacity is known, but for what not every Job reads.
func (w *Worker) counted(job types.NamespacedName) *scheduling.Snapshot {
	snapshot := *w.capacity.bound.Snapshot(w.capacity.ledger.Free(job), job)
	snapshot.Admission, snapshot.Namespaces = w.admission(job), w.capacity.objects.NamespaceLabels()
	snapshot.Preemption = w.View().Spec.Preemption == v1alpha1.PreemptionLowerPriority
	snapshot.Autoscaling = w.Room(job)
	version, _ := placement.ParseVersion(w.View().Version) // unknown: an old one
	found, known := w.capacity.objects.Devices(int(version.Minor), w.capacity.bound, job)
	if found != nil { // a nil of its type would be none
		snapshot.Devices = found
	}
	snapshot.DevicesUnknown = !known && version.Minor >= devices.ExtendedSince
	return &snapshot
}

// admission is what the worker's API server admits Pods of one Job by.
func (w *Worker) admission(job types.NamespacedName) *scheduling.Admission {
	a := w.capacity.objects.Admission(job.Namespace)
	if len(a.Quotas) > 0 {
		a.Counted, a.Awaited = w.capacity.ledger.Existing(job), w.capacity.ledger.Awaited(job)
	}
	return a
}
