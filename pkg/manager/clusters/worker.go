package clusters

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
)

// Worker is the connection to one worker cluster. It stays the same through losses and changes of
// the kubeconfig; a removed worker's fails all requests.
type Worker struct {
	name    string
	options Options
	meter   *meter
	wire    *wire
	client  client.Client
	mirrors *feed
	room    *room
	prober  *prober
	changed func() // tells the world to look at the View; never blocks

	view atomic.Pointer[View]
	// stale: numbers have moved since the reconciler last looked.
	stale   atomic.Bool
	reports reports
	// lastStart is when the Job controller was last seen to start a mirror.
	lastStart atomic.Pointer[time.Time]

	mu       sync.Mutex // guards what follows; never held while calling out
	health   Health
	settings Settings
	roomNow  CapacityState
	aim      *aim

	kicked    chan struct{} // room for one: the owner shall have a look
	suspected atomic.Bool   // the owner shall probe, too
	cancel    context.CancelFunc
	done      chan struct{}
}

// hooks are whom a worker tells.
type hooks struct {
	mirrorChanged func(key types.NamespacedName, exists bool)
	capacityFreed func()
	numbersMoved  func()
	changed       func()
}

func newWorker(name string, options Options, tell hooks) (*Worker, error) {
	w := &Worker{
		name:    name,
		options: options,
		meter:   newMeter(name),
		changed: tell.changed,
		kicked:  make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	w.wire = newWire(w.meter, w.suspect)
	var err error
	if w.client, err = newClient(w.wire, newLimiter(options, w.meter.throttle), options); err != nil {
		return nil, err
	}
	if w.mirrors, err = newMirrors(w.wire, options.Origin, mirrorHooks{tell.mirrorChanged, w.started}, w.kick); err != nil {
		return nil, err
	}
	if w.room, err = newRoom(w.wire, tell.capacityFreed, w.kick, tell.numbersMoved); err != nil {
		return nil, err
	}
	if w.prober, err = newProber(w.wire, options, w.meter.probe); err != nil {
		return nil, err
	}
	w.view.Store(&View{})
	return w, nil
}

// Name is the name of the WorkerCluster and of the registration Secret.
func (w *Worker) Name() string { return w.name }

// View is what is known of the worker now.
func (w *Worker) View() View { return *w.view.Load() }

// Mirror gets a Job of this origin from the cache. It must not be changed. What its absence means
// depends on Synced.
func (w *Worker) Mirror(key types.NamespacedName) (*batchv1.Job, bool) {
	object, found, err := w.mirrors.informer.GetIndexer().GetByKey(key.String())
	if err != nil || !found {
		return nil, false
	}
	job, ok := object.(*batchv1.Job)
	return job, ok
}

// Mirrors are all Jobs of this origin in the cache, in no order. They must not be changed.
func (w *Worker) Mirrors() []*batchv1.Job {
	objects := w.mirrors.informer.GetIndexer().List()
	jobs := make([]*batchv1.Job, 0, len(objects))
	for _, object := range objects {
		if job, ok := object.(*batchv1.Job); ok {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// LastStart is when the worker's Job controller was last seen to start a Job of this origin; zero:
// not yet by this process.
func (w *Worker) LastStart() time.Time {
	if at := w.lastStart.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// started notes that the Job controller has started a Job.
func (w *Worker) started() {
	now := w.now()
	w.lastStart.Store(&now)
}

// Synced says whether the worker is Ready, which includes that the mirrors have been listed: only
// then does the absence of one mean that there is none. The cache may lag behind the caller's own
// writes, as any cache does.
func (w *Worker) Synced() bool { return w.view.Load().State == Ready }

// Client reads and writes in the worker, without a cache. Requests are limited to Options.QPS, end
// after Options.RequestTimeout, and fail at once with ErrNotConnected while the worker isn't in
// touch.
func (w *Worker) Client() client.Client { return w.client }

// Ledger is the account of the worker's room. It's of use for placement while View().Capacity.Known;
// reservations may be made at any time.
func (w *Worker) Ledger() *capacity.Ledger { return w.room.ledger }

// kick makes the owner have a look.
func (w *Worker) kick() {
	select {
	case w.kicked <- struct{}{}:
	default: // it will have one anyway
	}
}

// suspect makes the owner probe.
func (w *Worker) suspect() {
	w.suspected.Store(true)
	w.kick()
}

// configure sets what the hub says, and reports whether that is something else than before.
func (w *Worker) configure(settings Settings, next *aim) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.settings.equal(settings) && w.aim.equal(next)
	w.settings = settings
	if !w.aim.equal(next) {
		if w.aim != nil {
			w.aim.abandon()
		}
		w.aim = next
	}
	w.publish()
	return !same
}

// take takes in what the owner found.
func (w *Worker) take(v verdict, room CapacityState) {
	w.mu.Lock()
	before, h := w.health, w.health.after(v)
	same := before.sameToOthers(h) && w.roomNow == room
	w.health, w.roomNow = h, room
	w.publish()
	w.mu.Unlock()
	if before.State == Ready && h.State != Ready {
		w.meter.losses.Inc()
	}
	if !same {
		w.changed()
	}
}

// publish makes the View; the caller holds the lock.
func (w *Worker) publish() {
	w.view.Store(&View{Health: w.health, Settings: w.settings, Capacity: w.roomNow})
}

// restartClock has the loss clock begin anew if it ran out in a time in which the hub was isolated.
func (w *Worker) restartClock(began, ended time.Time) {
	w.mu.Lock()
	out := w.health.LossClock.Add(w.lostTimeout())
	restarts := !w.health.LossClock.IsZero() && !out.Before(began) && !out.After(ended)
	if restarts {
		w.health.LossClock = ended
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
	if own := w.settings.Spec.WorkerLostTimeout; own != nil {
		return own.Duration
	}
	return w.options.WorkerLostTimeout
}

// now is the owner's clock.
func (w *Worker) now() time.Time { return w.options.Clock.Now() }
