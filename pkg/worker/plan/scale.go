package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Action is what a sync did about Pods, as the metrics name it.
type Action string

const (
	Reconciling Action = "reconciling" // the Job is ending, or being deleted
	tracking    Action = "tracking"    // the number of Pods was right
	podsCreated Action = "pods_created"
	podsDeleted Action = "pods_deleted"
)

// Deletion is a Pod to be deleted.
type Deletion struct {
	Pod *corev1.Pod
	// Untrack removes the tracking finalizer first, so that the Pod's end isn't counted: it is
	// surplus, the Job is stopped, or has succeeded without it. Otherwise the Pod stays tracked.
	Untrack bool
}

// scale brings the number of active Pods to what the spec wants. A sync either deletes or creates,
// and deletes first.
func (f *facts) scale(p *Plan) {
	want := f.wantActive()
	active := int32(len(f.active))
	surplus := f.surplus(int(want))
	if limit := f.options.MaxPodCreateDeletePerSync; !f.stopped() && len(surplus) > limit {
		surplus = surplus[:limit]
		p.More = true
	}
	p.Action = tracking
	if len(surplus) > 0 || f.stopped() {
		p.Action = podsDeleted
		for _, d := range surplus {
			p.Delete = append(p.Delete, Deletion{Pod: d.Pod, Untrack: d.tracked})
		}
		return
	}
	if f.replacesOnlyFailed {
		active += f.terminating
	}
	if missing := int(want - active); missing > 0 {
		p.Action = podsCreated
		f.grow(p, missing)
	}
}

// wantActive is the number of Pods that should run now.
func (f *facts) wantActive() int32 {
	parallelism := ptr.Deref(f.job.Spec.Parallelism, 1)
	switch completions := f.job.Spec.Completions; {
	case f.stopped():
		return 0
	case completions != nil:
		return max(0, min(parallelism, *completions-f.succeeded))
	case f.succeeded > 0 && !f.wasFenced():
		// A work queue is being emptied once a Pod has succeeded: the others run on, and no new one
		// is started.
		return int32(len(f.active))
	default:
		return parallelism
	}
}

// grow creates Pods, as far as back-off and the limit per sync allow.
func (f *facts) grow(p *Plan, missing int) {
	if !perIndex(f.job) {
		if wait := p.Backoff.remaining(f.now, f.options); wait > 0 {
			p.Wake = wake.Soonest(p.Wake, max(wait, f.options.SyncBatchPeriod))
			return
		}
	}
	limit := f.options.MaxPodCreateDeletePerSync
	if !f.indexed {
		for range min(missing, limit) {
			p.Create = append(p.Create, f.newPod)
		}
		p.More = missing > limit
		return
	}
	indexes := f.pendingIndexes(missing)
	if perIndex(f.job) {
		ready, first := f.readyIndexes(indexes)
		if first > 0 {
			p.Wake = wake.Soonest(p.Wake, max(first, f.options.SyncBatchPeriod))
		}
		indexes = ready
	}
	p.More = len(indexes) > limit
	for _, index := range indexes[:min(len(indexes), limit)] {
		p.Create = append(p.Create, func() *corev1.Pod { return f.newIndexedPod(index) })
	}
}
