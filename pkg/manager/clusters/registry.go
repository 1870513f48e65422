package clusters

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/queue"
)

// controllerName is the name of the controller of worker clusters.
const controllerName = "clusters"

// Registry holds the connections to all worker clusters.
type Registry struct {
	options   Options
	claims    *claims
	listeners []Listener
	queue     queue.Queue
	roll      *roll
	isolation isolation

	mu      sync.RWMutex // never held while calling out
	workers map[string]*Worker
	sorted  []*Worker
	// holders are the workers that hold a mirror of a name, sorted. The slices are never changed.
	holders map[types.NamespacedName][]*Worker
	closed  bool
}

// NewRegistry makes a Registry without workers.
func NewRegistry(options Options) *Registry {
	options = options.withDefaults()
	return &Registry{
		options: options,
		claims:  newClaims(),
		queue:   queue.New(controllerName, nil),
		roll:    newRoll(),
		workers: map[string]*Worker{},
		holders: map[types.NamespacedName][]*Worker{},
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

// Loaded is closed when all WorkerClusters that there were when the manager started have been taken
// up, though perhaps not reached.
func (r *Registry) Loaded() <-chan struct{} { return r.roll.complete }

// PlacementsChanged has a worker's Jobs counted anew: at once if it's being removed, else soon. It
// never blocks.
func (r *Registry) PlacementsChanged(worker string) {
	if w, ok := r.Get(worker); ok && w.View().Removing {
		r.queue.Add(request(worker))
		return
	}
	r.numbersMoved(worker)
}

// numbersMoved has a worker's numbers looked at soon, once for all calls until then.
func (r *Registry) numbersMoved(worker string) {
	if w, ok := r.Get(worker); ok && !w.stale.Swap(true) {
		r.queue.AddAfter(request(worker), r.options.StatusInterval)
	}
}

// ensure makes the worker what the hub says, and creates it if it isn't there. A new worker is
// registered before the listeners are called.
func (r *Registry) ensure(name string, settings Settings, aim *aim, past past) error {
	w, created, err := r.obtain(name, past)
	if err != nil {
		return err
	}
	changed := w.configure(settings, aim)
	if created && !r.launch(w) {
		return nil
	}
	if changed {
		w.changed()
		w.kick()
	}
	return nil
}

// obtain finds or makes the worker; a new one doesn't run yet.
func (r *Registry) obtain(name string, past past) (w *Worker, created bool, err error) {
	if w, ok := r.Get(name); ok {
		return w, false, nil
	}
	if w, err = newWorker(name, r.options, r.hooks(name)); err != nil {
		return nil, false, err
	}
	w.health = Health{
		State:      Connecting,
		Reason:     v1alpha1.ReasonConnecting,
		Since:      past.since,
		LossClock:  past.clock,
		ClusterUID: past.clusterUID,
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
	go (&owner{Worker: w, claims: r.claims}).run(ctx)
	return true
}

// facts reads a worker for the reconciler; nil if there is none.
func (r *Registry) facts(name string) *workerFacts {
	w, ok := r.Get(name)
	if !ok {
		return nil
	}
	w.stale.Store(false) // before reading: what moves from now on is told anew
	facts := &workerFacts{
		View: w.View(), mirrors: len(w.mirrors.informer.GetIndexer().ListKeys()), reports: w.reports.all(),
		loss: r.Loss(name),
	}
	if facts.Capacity.Known {
		facts.totals = w.room.ledger.Totals()
	}
	return facts
}

// recall takes in, once, which workers there were before this process, and which clusters are
// theirs: whoever is reached first would else take the cluster of another.
func (r *Registry) recall(all []v1alpha1.WorkerCluster) {
	names := make([]string, 0, len(all))
	for i := range all {
		names = append(names, all[i].Name)
	}
	if !r.roll.call(names) {
		return
	}
	// Not when the process has started: it may have waited for days to be the leader.
	r.isolation.begin(r.options.Clock.Now())
	for i := range all {
		if uid := all[i].Status.ClusterUID; uid != "" {
			r.claims.take(uid, all[i].Name)
		}
	}
}

// sort makes the list anew; those who have the old one keep it.
func (r *Registry) sort() {
	r.sorted = make([]*Worker, 0, len(r.workers))
	for _, w := range r.workers {
		r.sorted = append(r.sorted, w)
	}
	slices.SortFunc(r.sorted, func(a, b *Worker) int { return cmp.Compare(a.name, b.name) })
}

// remove lets a worker go, and returns when nothing of it runs any more.
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
	}
}

func (r *Registry) hooks(name string) hooks {
	return hooks{
		mirrorChanged: func(key types.NamespacedName, exists bool) {
			r.recordMirror(name, key, exists)
			for _, l := range r.listeners {
				l.MirrorChanged(name, key)
			}
			r.mirrorsChanged(name)
		},
		capacityFreed: func() {
			for _, l := range r.listeners {
				l.CapacityFreed(name)
			}
		},
		numbersMoved: func() { r.numbersMoved(name) },
		changed: func() {
			for _, l := range r.listeners {
				l.WorkerChanged(name)
			}
			r.queue.Add(request(name))
			r.lookAround()
		},
	}
}

// mirrorsChanged matters to a worker that is let go when its last mirror is.
func (r *Registry) mirrorsChanged(name string) {
	if w, ok := r.Get(name); ok && w.View().Removing {
		r.queue.Add(request(name))
	}
}

// Start keeps the connections until the context ends, then closes them, and returns when nothing of
// them runs any more. The manager calls it.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.closed = true
	workers := r.sorted // they stay listed: what is under way must not take them for removed
	r.mu.Unlock()
	for _, w := range workers {
		w.cancel()
	}
	for _, w := range workers {
		<-w.done
	}
	return nil
}
