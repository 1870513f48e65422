package feed

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

// Worker is what Free has to know of the worker beside what is fed.
type Worker struct {
	Spec v1alpha1.WorkerClusterSpec
	// Version is the API server's gitVersion.
	Version string
	// Known: the State was, that is to be judged by.
	Known bool
}

// Free is what the worker's API server and scheduler judge one Job's Pods by: neither what is held
// for the Job nor its own Pods are in its way. Without a name, they are for any Job of the
// namespace. It is nil if nothing is known that matters. What not every Job reads is gathered from
// the first one on that does.
func (f *Feed) Free(job types.NamespacedName, reads placement.Reads, w Worker) *placement.Snapshot {
	var free *placement.Snapshot
	if w.Known {
		free = f.counted(job, w)
		if (reads.Namespaces || f.capacity.bound.SelectNamespaces()) && f.capacity.namespaces.ask() {
			free.Listing = placement.NamespacesListing
		}
	}
	if !reads.Claims {
		return free
	}
	if free == nil {
		free = &placement.Snapshot{NodesUnknown: true}
	}
	if f.capacity.volumes.ask() {
		free.Listing = placement.VolumesListing
		return free
	}
	free.Volumes = f.capacity.objects.Volumes()
	return free
}

// counted is what is known of a worker whose capacity is known, but for what not every Job reads.
func (f *Feed) counted(job types.NamespacedName, w Worker) *placement.Snapshot {
	snapshot := *f.capacity.bound.Snapshot(f.capacity.ledger.Free(job), job)
	snapshot.Admission, snapshot.Namespaces = f.admission(job), f.capacity.objects.NamespaceLabels()
	snapshot.Preemption = w.Spec.Preemption == v1alpha1.PreemptionLowerPriority
	snapshot.Autoscaling = f.Room(job, &w.Spec)
	version, _ := placement.ParseVersion(w.Version) // unknown: an old one
	found, known := f.capacity.objects.Devices(int(version.Minor), f.capacity.bound, job)
	if found != nil { // a nil of its type would be none
		snapshot.Devices = found
	}
	snapshot.DevicesUnknown = !known && version.Minor >= placement.ExtendedSince
	return &snapshot
}

// admission is what the worker's API server admits Pods of one Job by.
func (f *Feed) admission(job types.NamespacedName) *placement.Admission {
	a := f.capacity.objects.Admission(job.Namespace)
	if len(a.Quotas) > 0 {
		a.Counted, a.Awaited = f.capacity.ledger.Existing(job), f.capacity.ledger.Awaited(job)
	}
	return a
}
