package fence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

// The manager renews its Leases with the credentials of the registration Secrets; what those need
// in a worker is in package workeraccess.

// Options of a Keeper. What is zero gets its default, but for the required.
type Options struct {
	// Origin of this hub. Required.
	Origin v1alpha1.Origin
	// Duration is how long a Lease lasts without a renewal, in whole seconds. Default
	// fence.DefaultDuration, 40s.
	Duration time.Duration
	// Interval is the time between two renewals. Default a fourth of Duration.
	Interval time.Duration
	// Clock defaults to the real one.
	Clock clock.WithTicker
}

// Validate returns what is wrong with the options.
func (o Options) Validate() error {
	if o.Duration < 0 || o.Duration%time.Second != 0 {
		return fmt.Errorf("lease duration: must be whole seconds, but is %s", o.Duration)
	}
	if o = o.withDefaults(); o.Interval <= 0 || o.Interval >= o.Duration {
		return fmt.Errorf("interval: must be less than the Lease's duration (%s), but is %s", o.Duration, o.Interval)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Duration == 0 {
		o.Duration = fence.DefaultDuration
	}
	if o.Interval == 0 {
		o.Interval = o.Duration / (fence.DefaultDuration / fence.DefaultInterval)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Keeper renews the Leases in all workers. It is a clusters.Listener, and a Runnable of the leader.
type Keeper struct {
	registry *clusters.Registry
	options  Options
	changed  chan struct{} // buffered, for one: workers were registered or removed

	mu       sync.Mutex
	renewers map[string]*running
}

// running is a renewer that runs.
type running struct {
	*renewer
	stop context.CancelFunc
}

// New makes a Keeper for the workers of a registry, and adds it as a listener. It must be called
// before the registry starts.
func New(registry *clusters.Registry, options Options) *Keeper {
	k := &Keeper{
		registry: registry, options: options.withDefaults(),
		changed: make(chan struct{}, 1), renewers: map[string]*running{},
	}
	registry.AddListener(k)
	return k
}

// Start renews the Leases until the context ends, and returns when nothing of it runs any more.
func (k *Keeper) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.registry.Leading():
	}
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	for {
		k.sync(ctx, &goroutines)
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
		}
	}
}

// sync starts a renewer for each worker, and stops those of removed ones.
func (k *Keeper) sync(ctx context.Context, goroutines *sync.WaitGroup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	there := map[string]bool{}
	for _, w := range k.registry.List() {
		there[w.Name()] = true
		if old := k.renewers[w.Name()]; old != nil {
			if old.worker == worker(w) {
				continue
			}
			old.stop() // it has been removed and registered again
		}
		ctx, stop := context.WithCancel(ctx)
		r := &running{newRenewer(w, k.options, k.registry.Report), stop}
		k.renewers[w.Name()] = r
		goroutines.Go(func() { r.run(ctx) })
	}
	for name, r := range k.renewers {
		if !there[name] {
			r.stop()
			delete(k.renewers, name)
		}
	}
}

// WorkerChanged implements clusters.Listener: the Lease in a worker that is back is renewed at
// once.
func (k *Keeper) WorkerChanged(name string) {
	k.wake(name)
	wake.Signal(k.changed)
}

// MirrorChanged implements clusters.Listener: the Lease is deleted after the last mirror of a
// worker that is being removed.
func (k *Keeper) MirrorChanged(name string, _ types.NamespacedName) {
	if w, ok := k.registry.Get(name); ok && w.View().Removing && len(w.Mirrors()) == 0 {
		k.wake(name)
	}
}

// CapacityFreed implements clusters.Listener.
func (k *Keeper) CapacityFreed(string, placement.Change) {}

// PodsStuck implements clusters.Listener.
func (k *Keeper) PodsStuck(string, types.NamespacedName) {}

func (k *Keeper) wake(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.renewers[name]; r != nil {
		r.wake()
	}
}
