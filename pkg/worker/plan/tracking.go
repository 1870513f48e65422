package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// tracking moves ended Pods through the steps that keep each from being counted twice: listed as
// uncounted, released, counted.
type tracking struct {
	release []*corev1.Pod
	tracked sets.Set[types.UID]                    // Pods that still have the finalizer
	actions map[batchv1.PodFailurePolicyAction]int // rules applied, for the metrics
	more    bool                                   // the list is full, some Pods are left for the next sync
}

// track lists the Pods that have ended as uncounted, and picks those whose finalizer can go once
// that is written. The verdict is the one being enforced, or nil.
func (f *facts) track(v *verdict) tracking {
	t := tracking{tracked: sets.New[types.UID](), actions: map[batchv1.PodFailurePolicyAction]int{}}
	pods := filter(f.pods, func(p *pod) bool { return p.tracked })
	for _, p := range pods {
		t.tracked.Insert(p.UID)
	}
	countReleased(&f.next, t.tracked)
	listed := f.next.UncountedTerminatedPods
	newIndexes := 0
	for _, p := range pods {
		if !f.releasable(p, v) {
			continue
		}
		t.release = append(t.release, p.Pod)
		newIndexes += f.list(p, v, &t)
		if newIndexes+len(listed.Succeeded)+len(listed.Failed) >= f.options.MaxUncountedPods {
			t.more = true
			break
		}
	}
	return t
}

// releasable tells whether the Pod is of no more use to the Job.
func (f *facts) releasable(p *pod, v *verdict) bool {
	if f.job.DeletionTimestamp != nil || v != nil || p.succeeded() {
		return true
	}
	awaited := f.indexes.awaiting[p.index]
	return f.countsAsFailed(p) && (awaited == nil || awaited.UID != p.UID)
}

// list notes the Pod's end in the status. It returns 1 for a success that is noted by its index
// alone: recording an index twice does no harm, so no UID has to be kept for it.
func (f *facts) list(p *pod, v *verdict, t *tracking) (newIndex int) {
	listed := f.next.UncountedTerminatedPods
	// A Pod is listed once, as what it was first seen to be: the API server refuses a UID in both
	// lists (kubernetes#125410).
	known := f.listed.Has(p.UID)
	switch {
	case p.succeeded() && f.indexed:
		if f.valid(p) && !f.indexes.recorded.Has(p.index) && !known {
			return 1
		}
	case p.succeeded():
		if !known {
			listed.Succeeded = append(listed.Succeeded, p.UID)
		}
	case (f.countsAsFailed(p) || v != nil && v.failed()) && !known && f.valid(p):
		r := rule(f.job.Spec.PodFailurePolicy, p.Pod)
		if r.action != "" {
			t.actions[r.action]++
		}
		if r.counts() {
			listed.Failed = append(listed.Failed, p.UID)
		}
	}
	return 0
}

// countReleased turns listed UIDs whose Pods are no longer tracked into counts.
func countReleased(status *batchv1.JobStatus, tracked sets.Set[types.UID]) {
	listed := status.UncountedTerminatedPods
	kept := func(uids []types.UID) []types.UID {
		return slices.DeleteFunc(slices.Clone(uids), func(uid types.UID) bool { return !tracked.Has(uid) })
	}
	succeeded, failed := kept(listed.Succeeded), kept(listed.Failed)
	status.Succeeded += int32(len(listed.Succeeded) - len(succeeded))
	status.Failed += int32(len(listed.Failed) - len(failed))
	listed.Succeeded, listed.Failed = succeeded, failed
}
