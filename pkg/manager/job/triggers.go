package job

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/flapping"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// triggers enqueues Jobs: on events of the hub's Jobs, and of the workers. It implements
// clusters.Listener and kueue.JobController.
type triggers struct {
	*Reconciler
	queue    queue.Queue
	flapping *flapping.Pace
}

// Priorities of Jobs in the queue, beside zero.
const (
	// deferredPriority is that of Jobs that had their turn and were deferred: they come before others.
	deferredPriority = 1
	// lowPriority is that of what can wait: the overflow of many Jobs at once, and all Jobs after a
	// start, most of which need nothing.
	lowPriority = -1
)

// Enqueue has Jobs reconciled.
func (t *triggers) Enqueue(keys ...types.NamespacedName) { t.enqueueIn(0, keys...) }

// enqueueIn has Jobs reconciled after some time.
func (t *triggers) enqueueIn(after time.Duration, keys ...types.NamespacedName) {
	priority := t.priority()
	for _, key := range keys {
		t.queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, ctrl.Request{NamespacedName: key})
	}
}

// priority is that of what happens now.
func (t *triggers) priority() int {
	if !t.startup.over() {
		return lowPriority
	}
	return 0
}

// enqueueFirst has Jobs reconciled: the first n with a priority, the rest with lowPriority.
func (t *triggers) enqueueFirst(n, priority int, keys ...types.NamespacedName) {
	for i, key := range keys {
		if i == n {
			priority = lowPriority
		}
		t.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(priority)}, ctrl.Request{NamespacedName: key})
	}
}

// enqueueSeen has a Job of the hub reconciled that the watch shows. A standby leaves that to
// enqueueAll: nobody works on its queue, where names would pile up.
func (t *triggers) enqueueSeen(key types.NamespacedName) {
	if t.startup.elected() {
		t.Enqueue(key)
	}
}

// enqueueAll has all Jobs of the hub reconciled that were seen until this replica led.
func (t *triggers) enqueueAll() { t.Enqueue(t.store.all()...) }

// enqueueDeferred has Jobs reconciled that were deferred at their turn.
func (t *triggers) enqueueDeferred(keys ...types.NamespacedName) {
	t.enqueueFirst(len(keys), deferredPriority, keys...)
}

// maxRelated is how many Jobs are looked at before others for one change of something else.
const maxRelated = 1000

// EnqueueRelated has Jobs reconciled for a change of something else: an object in their way,
// another Job of their group, or a Workload of Kueue. One tenant can have many of these, and make
// such changes again and again: the rest comes after all others.
func (t *triggers) EnqueueRelated(keys ...types.NamespacedName) {
	t.enqueueFirst(maxRelated, t.priority(), keys...)
}

// EnqueueUnplaced has all Jobs reconciled that wait for capacity.
func (t *triggers) EnqueueUnplaced() { t.Enqueue(t.store.waiters(ofChange)...) }

// enqueueAfterStart has all Jobs reconciled that wait, also those that were never judged.
func (t *triggers) enqueueAfterStart() {
	t.EnqueueUnplaced()
	t.Enqueue(t.line.NotJudged()...)
	t.line.Resume()
}

// PlacementResult implements kueue.JobController.
func (t *triggers) PlacementResult(key types.NamespacedName, uid types.UID) (kueue.PlacementResult, bool) {
	rec := t.store.of(key, jobID(digest.Of(uid)))
	if rec == nil {
		return kueue.PlacementResult{}, false
	}
	p := rec.read(t.clock.Now()).placement
	return ptr.Deref(p, kueue.PlacementResult{}), p != nil
}

// maxGroupJobs bounds the Jobs by which one Workload is judged. A JobSet has far fewer.
const maxGroupJobs = 10_000

// GroupJobs implements kueue.JobController.
func (t *triggers) GroupJobs(of group.ID) ([]types.NamespacedName, bool) {
	return t.store.jobsOf(of, maxGroupJobs, true), !of.JobSet || slices.Contains(t.store.groups.kinds, group.JobSetKind)
}

// MirrorChanged implements clusters.Listener.
func (t *triggers) MirrorChanged(worker string, c clusters.MirrorChange) {
	now := t.clock.Now()
	if w, ok := t.workers.get(worker); ok {
		m, _ := w.Mirror(c.Key)
		if echo := t.store.observeMirror(worker, c.Key, m, c.Last, now); echo || c.Last != nil {
			return
		}
	}
	if c.IsProgress == nil || !t.store.looksSoon(c.Key, now) || !c.IsProgress() {
		t.Enqueue(c.Key)
	}
}

// WorkerChanged implements clusters.Listener.
func (t *triggers) WorkerChanged(worker string) {
	t.startup.workerChanged()
	if _, registered := t.workers.get(worker); registered {
		t.flapping.Changed(worker, func() {
			if _, registered := t.workers.get(worker); registered {
				t.enqueueForWorker(worker)
			}
		})
		return
	}
	t.enqueueForWorker(worker)
	t.forgetWorker(worker)
	t.flapping.Forget(worker)
}

// WorkerRestored implements clusters.Listener.
func (t *triggers) WorkerRestored(worker string) {
	t.store.forgetAnswers(worker)
	t.copier.Tracker.ForgetWorker(worker)
}

// enqueueForWorker has all Jobs reconciled that a worker's change may concern.
func (t *triggers) enqueueForWorker(worker string) {
	t.line.WorkerChanged(worker)
	t.Enqueue(t.store.mirroredIn(worker)...)
	if w, ok := t.workers.get(worker); ok {
		for _, m := range w.Mirrors() {
			t.Enqueue(m.Key)
		}
	}
	t.Enqueue(t.store.on(worker)...)
	t.EnqueueUnplaced()
}

// enqueueUnmarked has the Jobs of this origin reconciled that only their Pods show. A mirror may
// lose its marks while no process sees it that knows its UID.
func (t *triggers) enqueueUnmarked() {
	for _, w := range t.workers.list() {
		if !w.Synced() {
			continue
		}
		for _, key := range w.UnseenMirrors() {
			t.store.open(key).updateMirror(w.Name(), func(m *mirrorMemory) { m.isSought = true })
			t.Enqueue(key)
		}
	}
}

// CapacityFreed implements clusters.Listener.
func (t *triggers) CapacityFreed(worker string, c placement.Change) { t.line.Changed(worker, c) }

// PodsStuck implements clusters.Listener. Nothing of the mirror changes when the scheduler or a
// kubelet says that a Pod of it can't start.
func (t *triggers) PodsStuck(_ string, key types.NamespacedName) {
	if !t.store.looksSoon(key, t.clock.Now()) {
		t.Enqueue(key)
	}
}

// PodUnlabelled implements clusters.Listener. A Pod that its mirror doesn't select is let go by the
// Job controller, which makes another one in its place, and so on.
func (t *triggers) PodUnlabelled(worker string, key types.NamespacedName, job types.UID) {
	w, ok := t.workers.get(worker)
	if !ok || !t.startup.elected() { // a standby takes nothing back
		return
	}
	if m, _ := w.Mirror(key); m == nil || m.UID != job || !mirror.SelectsByID(m) || mirror.HasPods(m) {
		return
	}
	t.store.open(key).updateMirror(worker, func(m *mirrorMemory) { m.created, m.takenBack = job, stripsPodsText })
	t.Enqueue(key)
}

// jobEvents handles the watch of the hub's Jobs.
func (t *triggers) jobEvents() handler.TypedEventHandler[*batchv1.Job, ctrl.Request] {
	type q = handler.TypedFuncs[*batchv1.Job, ctrl.Request]
	return q{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*batchv1.Job], _ requests) { t.jobSeen(e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*batchv1.Job], _ requests) {
			if e.ObjectOld.UID != e.ObjectNew.UID { // a deletion that the watch missed
				t.jobGone(e.ObjectOld, false)
			}
			t.jobSeen(e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*batchv1.Job], _ requests) {
			t.guard.Saw(e.Object.ResourceVersion)
			t.jobGone(e.Object, !e.DeleteStateUnknown)
		},
	}
}

// jobSeen takes over a hub Job from the watch, and enqueues it, unless it's the echo of this
// process's own write, answered or not: the reconcile that wrote goes on by itself.
func (t *triggers) jobSeen(job *batchv1.Job) {
	t.guard.Saw(job.ResourceVersion)
	if !mirror.Managed(job) {
		if dispatch.IsForsaken(job) {
			t.enqueueSeen(keyOf(job))
		}
		return
	}
	echo, changed := t.store.observe(job, t.clock.Now())
	for _, worker := range changed {
		t.workers.PlacementsChanged(worker)
	}
	t.enqueueConcerned()
	if key := keyOf(job); !echo && (job.DeletionTimestamp != nil || !t.writes.saw(key, job.ResourceVersion)) {
		t.enqueueSeen(key)
	}
}

// jobGone forgets a hub Job; isSeen: the hub has said that it's gone.
func (t *triggers) jobGone(job *batchv1.Job, isSeen bool) {
	if !mirror.Managed(job) {
		return
	}
	key := keyOf(job)
	deletion, left := t.store.deletionOf(job), append(usage.Read(job).IDs(), t.store.unreleasedOf(job)...)
	t.forget(key, idOf(job))
	if isSeen && t.startup.elected() { // a standby looks at no Job
		t.store.open(key).updateGone(func(g *dispatch.Gone) { *g = dispatch.Gone{UID: job.UID, Deletion: deletion, Mirrors: left} })
	}
	t.enqueueSeen(key)
}
