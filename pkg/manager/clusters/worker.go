package clusters

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/placement/capacity"
	"github.com/jobferry/jobferry/pkg/placement/change"
)

// Worker is the connection to one worker cluster. It stays the same through losses and changes of
// the kubeconfig; a removed worker's fails all requests.
type Worker struct {
	name       string
	options    Options
	connection *connection
	client     client.Client
	mirrors    *mirrors
	intake     *intake // of the mirrors
	capacity   *capacityInformers
	autoscaler *autoscalerReader
	room       roomCache
	prober     *prober
	changed    func() // called when the View has changed; never blocks

	view atomic.Pointer[View]
	// numbersStale: numbers have changed since the reconciler last read them.
	numbersStale atomic.Bool
	reports      reports
	// lastStart is when the Job controller was last seen to start a mirror.
	lastStart atomic.Pointer[time.Time]
	// alone is the list of this worker, which all Jobs share that only it holds.
	alone []*Worker

	mu      sync.Mutex // guards what follows; never held while calling out
	current View
	target  *target

	woken          chan struct{} // buffered, for one
	probeRequested atomic.Bool
	cancel         context.CancelFunc
	done           chan struct{}
}

// callbacks are called on a worker's events. They must not block.
type callbacks struct {
	mirrorChanged  func(key types.NamespacedName, exists bool)
	capacityFreed  func(change.Change)
	podsStuck      func(types.NamespacedName)
	numbersChanged func()
	changed        func()
}

func newWorker(name string, options Options, call callbacks) (*Worker, error) {
	w := &Worker{
		name:    name,
		options: options,
		changed: call.changed,
		woken:   make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	w.alone = []*Worker{w}
	w.connection = newConnection(newMeter(name), w.now, w.requestProbe, options.listTime().all)
	var err error
	if w.client, err = newClient(w.connection, options); err != nil {
		return nil, err
	}
	w.intake = mirrorIntake(w.maxMirrors)
	if w.mirrors, err = newMirrors(w.connection, options.Origin, w.intake, mirrorCallbacks{w.mirrorChanged(call.mirrorChanged), w.started}, w.wake); err != nil {
		return nil, err
	}
	if w.capacity, err = newCapacityInformers(w.connection, call, w.wake, w.now); err != nil {
		return nil, err
	}
	if w.autoscaler, err = newAutoscalerReader(name, w.connection, w.capacity.ledger, options, autoscalerCallbacks{
		changed: func() { call.changed(); w.wake() },
		grown:   func() { call.capacityFreed(change.Change{Kinds: change.All}); w.wake() },
		stuck:   call.podsStuck,
	}); err != nil {
		return nil, err
	}
	if w.prober, err = newProber(w.connection, options); err != nil {
		return nil, err
	}
	w.view.Store(&View{})
	return w, nil
}

// Name is the name of the WorkerCluster and of the registration Secret.
func (w *Worker) Name() string { return w.name }

// View is what is known of the worker now.
func (w *Worker) View() View { return *w.view.Load() }

// Mirror gets a Job of this origin from the cache. What its absence means depends on Synced.
func (w *Worker) Mirror(key types.NamespacedName) (*batchv1.Job, bool) {
	object, found, err := w.mirrors.store.GetByKey(key.String())
	if err != nil || !found {
		return nil, false
	}
	job, ok := object.(*packed.Job)
	if !ok {
		return nil, false
	}
	return job.Unpack(), true
}

// Mirrors are all Jobs of this origin in the cache, in no order.
func (w *Worker) Mirrors() []packed.Facts {
	objects := w.mirrors.store.List()
	mirrors := make([]packed.Facts, 0, len(objects))
	for _, object := range objects {
		if job, ok := object.(*packed.Job); ok {
			mirrors = append(mirrors, job.Facts())
		}
	}
	return mirrors
}

// LastStart is when the worker's Job controller was last seen to start a Job of this origin; zero:
// not yet by this process.
func (w *Worker) LastStart() time.Time {
	if at := w.lastStart.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// mirrorChanged calls on, and wakes the supervisor when the worker is full, or no more.
func (w *Worker) mirrorChanged(call func(types.NamespacedName, bool)) func(types.NamespacedName, bool) {
	return func(key types.NamespacedName, exists bool) {
		call(key, exists)
		if w.isFull() != w.View().Full {
			w.wake()
		}
	}
}

// started records that the Job controller has started a Job.
func (w *Worker) started() {
	now := w.now()
	w.lastStart.Store(&now)
}

// Synced reports whether the worker is Ready, which includes that the mirrors have been listed:
// only then does the absence of one mean that there is none. The cache may lag behind the caller's
// own writes, as any cache does.
func (w *Worker) Synced() bool { return w.view.Load().State == Ready }

// Client reads and writes in the worker, without a cache. Requests are limited to Options.QPS, end
// after Options.RequestTimeout, and fail at once with ErrNotConnected while the worker isn't
// connected.
func (w *Worker) Client() client.Client { return w.client }

// Ledger records the worker's capacity. Placement can use it while View().Capacity.Known;
// reservations may be made at any time.
func (w *Worker) Ledger() *capacity.Ledger { return w.capacity.ledger }

// PodTimes are those of a Job's Pods, by the UID of the mirror.
func (w *Worker) PodTimes(mirror types.UID) usage.Times { return w.capacity.times.Times(mirror) }

// PodTimesThen are the times that PodTimes had then, of the Pods that are still there.
func (w *Worker) PodTimesThen(mirror types.UID, then usage.Then) usage.Times {
	return w.capacity.times.TimesThen(mirror, then)
}

// wake makes the supervisor sync.
func (w *Worker) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it will sync anyway
	}
}

// requestProbe makes the supervisor probe.
func (w *Worker) requestProbe() {
	w.probeRequested.Store(true)
	w.wake()
}

// configure sets what the hub says, and reports whether that is something else than before.
func (w *Worker) configure(settings Settings, next *target) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.current.equal(settings)
	w.current.Settings = settings
	if !w.target.equal(next) {
		same = false
		if w.target != nil {
			w.target.cancel()
		}
		w.target = next
	}
	w.publish()
	return !same
}

// observe records what the supervisor found.
func (w *Worker) observe(o observation, capacity CapacityState) {
	full := w.isFull()
	w.mu.Lock()
	before := w.current
	w.current.Health, w.current.Capacity, w.current.Full = before.after(o), capacity, full
	after := w.current
	w.publish()
	w.mu.Unlock()
	if before.State == Ready && after.State != Ready {
		w.connection.meter.losses.Inc()
	}
	if !before.sameToOthers(after.Health) || before.Capacity != capacity || before.Full != full {
		w.changed()
	}
}

// publish updates the View; the caller holds the lock.
func (w *Worker) publish() {
	view := w.current
	w.view.Store(&view)
}

// restartClock restarts the loss clock if it ran out in a time in which the hub was isolated.
func (w *Worker) restartClock(began, ended time.Time) {
	w.mu.Lock()
	clock := &w.current.LossClock
	out := clock.Add(w.lostTimeout())
	restarts := !clock.IsZero() && !out.Before(began) && !out.After(ended)
	if restarts {
		*clock = ended
		w.publish()
	}
	w.mu.Unlock()
	if restarts {
		w.changed()
	}
}

// LostTimeout is how long the worker may be not Ready before it counts as lost.
func (w *Worker) LostTimeout() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostTimeout()
}

func (w *Worker) lostTimeout() time.Duration {
	if own := w.current.Spec.WorkerLostTimeout; own != nil {
		return own.Duration
	}
	return w.options.WorkerLostTimeout
}

func (w *Worker) maxMirrors() int {
	if own := w.View().Spec.MaxMirrors; own != nil {
		return int(*own)
	}
	return DefaultMaxMirrors
}

// isFull reports whether the worker has as many mirrors as it may have. Once it's full, it stays so
// until it has a twentieth less.
func (w *Worker) isFull() bool {
	most := w.maxMirrors()
	if w.View().Full {
		most -= most / 20
	}
	return w.intake.held() >= most
}

func (w *Worker) now() time.Time { return w.options.Clock.Now() }
