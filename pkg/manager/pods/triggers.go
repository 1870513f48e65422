package pods

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

var _ clusters.PodListener = &reconciler{}

// sweepInterval is the time between two looks at all that isn't as it should be, and wakeDelay is
// how long changes are gathered that need one at once.
const (
	sweepInterval = 15 * time.Second
	wakeDelay     = 500 * time.Millisecond
)

// enqueue has Pods looked at, those of one namespace after those of another: a look at one of a
// large Job takes long. A standby looks at none: nobody works on its queue.
func (r *reconciler) enqueue(names ...types.NamespacedName) {
	if !r.leads.Load() {
		return
	}
	for _, name := range names {
		r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(inTurn)}, ctrl.Request{NamespacedName: name})
	}
}

// inTurn is the priority of all requests: a backlog has them take turns.
const inTurn = -1

// Shown implements clusters.PodListener. Before all namespaces have been seen, all are shown: the
// reports of their Pods are held for nothing at worst.
func (r *reconciler) Shown(namespace string) bool {
	if !r.namespacesSeen() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.namespaces[namespace]
	return is
}

// isLeaving reports whether a namespace whose Pods are shown is being deleted.
func (r *reconciler) isLeaving(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.namespaces[namespace].leaving
}

// PodChanged implements clusters.PodListener.
func (r *reconciler) PodChanged(name types.NamespacedName) { r.enqueue(name) }

// WorkersChanged implements clusters.PodListener: Nodes and Pods are looked at soon.
func (r *reconciler) WorkersChanged() { wake.Signal(r.woken) }

// namespaceEvents handles the watch of the hub's namespaces.
func (r *reconciler) namespaceEvents() toolscache.ResourceEventHandler {
	set := func(object any, exists bool) {
		if tombstone, is := object.(toolscache.DeletedFinalStateUnknown); is {
			object = tombstone.Obj
		}
		n, is := object.(*metav1.PartialObjectMetadata)
		if !is {
			return
		}
		r.mu.Lock()
		_, was := r.namespaces[n.Name]
		shown := exists && n.Labels[v1alpha1.LabelPods] == v1alpha1.PodsEnabled && r.options.Gate.Closed(n.Name, n.Labels) == ""
		if shown {
			r.namespaces[n.Name] = shownNamespace{n.Labels, n.DeletionTimestamp != nil}
		} else {
			delete(r.namespaces, n.Name)
		}
		r.mu.Unlock()
		if shown || was {
			wake.Signal(r.woken)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { set(object, true) },
		UpdateFunc: func(_, object any) { set(object, true) },
		DeleteFunc: func(object any) { set(object, false) },
	}
}

// jobEvents handles the watch of the hub's Jobs. What becomes of a Job's Pods, their workers tell,
// unless one can't be reached.
func (r *reconciler) jobEvents() toolscache.ResourceEventHandler {
	left := func(job *batchv1.Job, now []string) {
		if !r.leads.Load() || !mirror.Managed(job) {
			return
		}
		for _, worker := range shards.WorkersOf(job) {
			if w, is := r.registry.Get(worker); (!is || !w.Synced()) && !slices.Contains(now, worker) && r.shadows.of(job, worker) > 0 {
				wake.Signal(r.woken)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, ok := before.(*batchv1.Job)
			is, also := after.(*batchv1.Job)
			if ok && also {
				left(was, shards.WorkersOf(is))
			}
		},
		DeleteFunc: func(object any) {
			if was, is := object.(*batchv1.Job); is {
				left(was, nil)
			}
		},
	}
}

// shadowChanged has a Pod on our Nodes looked at.
func (r *reconciler) shadowChanged(s *shadow) { r.enqueue(s.key) }

// shadowGone has a Pod looked at whose shadow is gone.
func (r *reconciler) shadowGone(s *shadow) {
	if w, is := r.registry.Get(s.worker.Value()); is {
		w.Reports().Removed(s.key, s.pod)
	}
	r.enqueue(s.key)
}

// Start keeps the Nodes, and has Pods looked at that aren't as they should be, while this replica
// leads.
func (r *reconciler) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.registry.Loaded():
	}
	r.leads.Store(true)
	defer r.leads.Store(false)
	ticks, sweeps := r.clock.NewTicker(renewInterval), r.clock.NewTicker(sweepInterval)
	defer ticks.Stop()
	defer sweeps.Stop()
	for listed := false; ; {
		listed = listed || r.listNodes(ctx)
		r.syncNodes(ctx)
		r.sweep()
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C():
		case <-sweeps.C():
		case <-r.woken:
			select { // once for many
			case <-ctx.Done():
			case <-r.clock.After(wakeDelay):
			}
		}
	}
}

// listNodes finds the Nodes that there are already. Their Pods are watched, also if their workers
// aren't registered any more.
func (r *reconciler) listNodes(ctx context.Context) (listed bool) {
	there, err := r.nodes.list(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Can't list the Nodes of workers")
		return false
	}
	for _, worker := range there {
		r.nodes.set(worker, true)
		r.watch(ctx, worker)
	}
	return true
}

// syncNodes brings the Nodes up to date. The hub's garbage collection removes those of workers that
// aren't registered any more. Then nothing is there that could be looked at.
func (r *reconciler) syncNodes(ctx context.Context) {
	for _, w := range r.wanted() {
		v := w.View()
		state := workerState{ready: w.Synced(), reason: v.Reason, message: v.Trouble()}
		if err := r.nodes.sync(ctx, w.Name(), state); err != nil {
			log.FromContext(ctx).Error(err, "Can't write the Node of a worker")
			continue
		}
		r.watch(ctx, w.Name())
	}
	for _, worker := range r.shadows.watched() {
		if _, is := r.registry.Get(worker); !is && r.shadows.synced(worker) && r.shadows.number(worker) == 0 {
			r.shadows.unwatch(worker)
			r.nodes.forget(worker)
			r.pace.forget(worker)
		}
	}
}

func (r *reconciler) watch(ctx context.Context, worker string) {
	if err := r.shadows.watch(ctx, worker); err != nil {
		log.FromContext(ctx).Error(err, "Can't watch the Pods on the Node of a worker", "worker", worker)
	}
}

// wanted are the workers that namespaces use whose Pods are shown, and those that have a Node.
func (r *reconciler) wanted() (wanted []*clusters.Worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.registry.List() {
		if r.nodes.has(w.Name()) || r.isUsed(w) {
			wanted = append(wanted, w)
		}
	}
	return wanted
}

// isUsed reports whether a namespace uses a worker. The caller holds the lock.
func (r *reconciler) isUsed(w *clusters.Worker) bool {
	v := w.View()
	selector, err := v.Namespaces()
	if err != nil || !hasName(w.Name()) || v.ClusterUID == "" {
		return false
	}
	for _, of := range r.namespaces {
		if selector == nil || selector.Matches(of.labels) {
			return true
		}
	}
	return false
}
