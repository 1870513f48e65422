package clusters

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/feed"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/flapping"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// controllerName is the name of the controller of worker clusters.
const controllerName = "clusters"

// Registry holds the connections to all worker clusters.
type Registry struct {
	options    Options
	identities *identities
	listeners  []Listener
	queue      queue.Queue
	leadership leadership
	startup    *startup
	isolation  isolation
	// flapping puts off the looks at the Pods on the hub.
	flapping *flapping.Pace

	mu      sync.RWMutex // never held while calling out
	workers map[string]*Worker
	sorted  []*Worker
	// holders are the workers that hold a mirror of a name, sorted. The slices are never changed.
	holders map[digest.Digest][]*Worker
	closed  bool
}

// NewRegistry makes a Registry without workers.
func NewRegistry(options Options) *Registry {
	options = options.withDefaults()
	return &Registry{
		options:    options,
		identities: newIdentities(),
		queue:      queue.New(controllerName, nil),
		leadership: newLeadership(),
		startup:    newStartup(),
		flapping:   flapping.NewPace(options.Clock),
		workers:    map[string]*Worker{},
		holders:    map[digest.Digest][]*Worker{},
	}
}

// AddListener adds a Listener. It must be called before the manager starts.
func (r *Registry) AddListener(listener Listener) { r.listeners = append(r.listeners, listener) }

// Get finds a worker by name. As long as there is a WorkerCluster, there is a worker, connected or
// not: a name that isn't found after Loaded stands for a worker that was removed, or that never
// was.
func (r *Registry) Get(name string) (*Worker, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	w, ok := r.workers[name]
	return w, ok
}

// List gives all workers, sorted by name. The slice must not be changed.
func (r *Registry) List() []*Worker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.sorted
}

// Loaded is closed when all WorkerClusters that there were when this replica began to lead are
// registered, though perhaps not connected. It isn't on a standby.
func (r *Registry) Loaded() <-chan struct{} { return r.startup.complete }

// PlacementsChanged has a worker's Jobs counted again: at once if it's being removed, else soon. It
// never blocks.
func (r *Registry) PlacementsChanged(worker string) {
	if w, ok := r.Get(worker); ok && w.View().Removing {
		r.queue.Add(request(worker))
		return
	}
	r.numbersChanged(worker)
}

// StockoutsChanged has those of a worker written to its status, at once if that was written long
// enough ago. It never blocks.
func (r *Registry) StockoutsChanged(worker string) { r.queue.Add(request(worker)) }

// numbersChanged has a worker's numbers read soon, once for all calls until then.
func (r *Registry) numbersChanged(worker string) {
	if w, ok := r.Get(worker); ok && r.leadership.leads() && !w.numbersStale.Swap(true) {
		r.queue.AddAfter(request(worker), r.options.StatusInterval)
	}
}

// renew ends the connection of a worker that was restored, which stays registered until ensure
// connects it anew. It returns when nothing of the old connection runs any more.
func (r *Registry) renew(name string) {
	w, ok := r.Get(name)
	if !ok {
		return
	}
	w.cancel()
	<-w.done
	r.mu.Lock()
	r.forgetHolder(name)
	r.mu.Unlock()
	r.tell(func(l Listener) { l.WorkerRestored(name) })
}

// ensure makes the worker what the hub says, and creates it if it isn't there, or has ended. A new
// worker is registered before the listeners are called.
func (r *Registry) ensure(name string, settings Settings, target *link.Target, before known) error {
	w, created, err := r.obtain(name, before)
	if err != nil {
		return err
	}
	changed := w.configure(settings, target)
	if created && !r.launch(w) {
		return nil
	}
	if changed {
		w.changed()
		w.wake()
	}
	return nil
}

// obtain finds or makes the worker; a new one doesn't run yet.
func (r *Registry) obtain(name string, before known) (w *Worker, created bool, err error) {
	if w, ok := r.Get(name); ok && !w.ended() {
		return w, false, nil
	}
	if w, err = newWorker(name, r.options, r.callbacks(name), func() { r.workerChanged(name) }, r.identities); err != nil {
		return nil, false, err
	}
	w.current.Health = Health{
		State:      Connecting,
		Reason:     v1alpha1.ReasonConnecting,
		Since:      before.since,
		LossClock:  before.clock,
		ClusterUID: before.clusterUID,
		Writer:     w.lease.Standing(),
	}
	return w, true, nil
}

// launch registers and starts a new worker, unless the registry has been closed.
func (r *Registry) launch(w *Worker) (launched bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	r.workers[w.name] = w
	r.sort()
	go w.supervise(ctx, r.identities)
	return true
}

// state reads a worker for the reconciler; nil if there is none.
func (r *Registry) state(name string) *workerState {
	w, ok := r.Get(name)
	if !ok {
		return nil
	}
	w.numbersStale.Store(false) // before reading, so that a later change counts
	state := &workerState{
		View: w.View(), mirrors: w.feed.Cached(), reports: w.reports.all(),
		loss: r.Loss(name),
	}
	if state.Spec.Drain {
		for _, m := range w.Mirrors() {
			if !m.Finished {
				state.running++
			}
		}
	}
	if state.Capacity.Known {
		state.totals = w.Ledger().Totals()
	}
	return state
}

// sort makes a new list; callers of List keep the old one.
func (r *Registry) sort() {
	r.sorted = make([]*Worker, 0, len(r.workers))
	for _, w := range r.workers {
		r.sorted = append(r.sorted, w)
	}
	slices.SortFunc(r.sorted, func(a, b *Worker) int { return cmp.Compare(a.name, b.name) })
}

// remove disconnects a worker, and returns when nothing of it runs any more.
func (r *Registry) remove(name string) {
	r.mu.Lock()
	w, ok := r.workers[name]
	delete(r.workers, name)
	r.sort()
	r.forgetHolder(name)
	r.mu.Unlock()
	if ok {
		w.cancel()
		<-w.done
		w.changed()
		r.flapping.Forget(name)
	}
}

// callbacks are what a feed calls.
func (r *Registry) callbacks(name string) feed.Options {
	options := feed.Options{
		MirrorChanged: func(c MirrorChange) {
			if c.Last != nil { // known before the worker is no holder any more
				r.tell(func(l Listener) { l.MirrorChanged(name, c) })
				c.Last = nil
			}
			r.recordMirror(name, c.Key, c.Exists)
			r.tell(func(l Listener) { l.MirrorChanged(name, c) })
			r.mirrorsChanged(name)
		},
		CapacityFreed: func(c placement.Change) { r.tell(func(l Listener) { l.CapacityFreed(name, c) }) },
		PodsStuck:     func(key types.NamespacedName) { r.tell(func(l Listener) { l.PodsStuck(name, key) }) },
		PodUnlabelled: func(key types.NamespacedName, job types.UID) {
			r.tell(func(l Listener) { l.PodUnlabelled(name, key, job) })
		},
		NumbersChanged: func() { r.numbersChanged(name) },
	}
	if pods := r.options.Pods; pods != nil {
		options.PodShown, options.PodChanged = pods.Shown, pods.PodChanged
		options.PodsKnown = func() { r.lookAtPods(name) }
	}
	return options
}

// workerChanged is called when the View of a worker has changed.
func (r *Registry) workerChanged(name string) {
	r.tell(func(l Listener) { l.WorkerChanged(name) })
	r.lookAtPods(name)
	r.queue.Add(request(name))
	r.updateIsolation()
}

// lookAtPods has the Pods on the hub looked at, of all workers: for one that changes again and
// again at a pace.
func (r *Registry) lookAtPods(name string) {
	if pods := r.options.Pods; pods != nil {
		r.flapping.Changed(name, pods.WorkersChanged)
	}
}

// tell calls the Listeners, while this replica leads.
func (r *Registry) tell(call func(Listener)) {
	if !r.leadership.leads() {
		return
	}
	for _, l := range r.listeners {
		call(l)
	}
}

// mirrorsChanged enqueues a worker that is removed once its last mirror is gone, or drained once
// all have ended.
func (r *Registry) mirrorsChanged(name string) {
	w, ok := r.Get(name)
	switch {
	case !ok:
	case w.View().Removing:
		r.queue.Add(request(name))
	case w.View().Spec.Drain:
		r.numbersChanged(name)
	}
}

// NeedLeaderElection says that a standby has connections, too.
func (r *Registry) NeedLeaderElection() bool { return false }

// Start keeps the connections until the context ends, then closes them, and returns when nothing of
// them runs any more. The manager calls it.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.closed = true
	workers := r.sorted // they stay listed: a reconcile that still runs must not take them for removed
	r.mu.Unlock()
	for _, w := range workers {
		w.cancel()
	}
	for _, w := range workers {
		<-w.done
	}
	return nil
}
