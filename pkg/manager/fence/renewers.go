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

// Options of the Renewers. What is zero gets its default, but for the required.
type Options struct {
	// Origin of this hub. Required.
	Origin v1alpha1.Origin
	// Duration is how long a Lease lasts without a renewal, in whole seconds. Default
	// fence.DefaultDuration, 40s.
	Duration time.Duration
	// Clock defaults to the real one.
	Clock clock.WithTicker
}

// Validate returns what is wrong with the options.
func (o Options) Validate() error {
	if o.Duration < 0 || o.Duration%time.Second != 0 {
		return fmt.Errorf("lease duration: must be whole seconds, but is %s", o.Duration)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Duration == 0 {
		o.Duration = fence.DefaultDuration
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// interval is the time between two renewals.
func (o Options) interval() time.Duration {
	return o.Duration / (fence.DefaultDuration / fence.DefaultInterval)
}

// Renewers renews the Leases in all workers. It is a clusters.Listener, and a Runnable of the
// leader.
type Renewers struct {
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

// New makes the Renewers for the workers of a registry, and adds it as a listener. It must be
// called before the registry starts.
func New(registry *clusters.Registry, options Options) *Renewers {
	all := &Renewers{
		registry: registry, options: options.withDefaults(),
		changed: make(chan struct{}, 1), renewers: map[string]*running{},
	}
	registry.AddListener(all)
	return all
}

// Start renews the Leases until the context ends, and returns when nothing of it runs any more.
func (all *Renewers) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-all.registry.Leading():
	}
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	for {
		all.sync(ctx, &goroutines)
		select {
		case <-ctx.Done():
			return nil
		case <-all.changed:
		}
	}
}

// sync starts a renewer for each worker, and stops those of removed ones.
func (all *Renewers) sync(ctx context.Context, goroutines *sync.WaitGroup) {
	all.mu.Lock()
	defer all.mu.Unlock()
	there := map[string]bool{}
	for _, w := range all.registry.List() {
		there[w.Name()] = true
		if old := all.renewers[w.Name()]; old != nil {
			if old.worker == worker(w) {
				continue
			}
			old.stop() // it has been removed and registered again
		}
		ctx, stop := context.WithCancel(ctx)
		r := &running{newRenewer(w, all.options, all.registry.Report), stop}
		all.renewers[w.Name()] = r
		goroutines.Go(func() { r.run(ctx) })
	}
	for name, r := range all.renewers {
		if !there[name] {
			r.stop()
			delete(all.renewers, name)
		}
	}
}

// WorkerChanged implements clusters.Listener: the Lease in a worker that is back is renewed at
// once.
func (all *Renewers) WorkerChanged(name string) {
	all.of(name, (*renewer).changed)
	wake.Signal(all.changed)
}

// WorkerRestored implements clusters.Listener: the renewer of the new connection remembers nothing.
func (all *Renewers) WorkerRestored(string) {}

// MirrorChanged implements clusters.Listener: the Lease is deleted after the last mirror of a
// worker that is being removed.
func (all *Renewers) MirrorChanged(name string, _ clusters.MirrorChange) {
	if w, ok := all.registry.Get(name); ok && mayBeReleased(w) {
		all.of(name, (*renewer).wake)
	}
}

// mayBeReleased reports whether a worker is being removed, and its last mirror is gone. It's called
// for each change of a mirror, so it may look at none of them.
func mayBeReleased(w interface {
	View() clusters.View
	HasMirrors() bool
}) bool {
	return w.View().Removing && !w.HasMirrors()
}

// CapacityFreed implements clusters.Listener.
func (all *Renewers) CapacityFreed(string, placement.Change) {}

// PodsStuck implements clusters.Listener.
func (all *Renewers) PodsStuck(string, types.NamespacedName) {}

// PodUnlabelled implements clusters.Listener.
func (all *Renewers) PodUnlabelled(string, types.NamespacedName, types.UID) {}

// of calls the renewer of a worker, if there is one: one at a time.
func (all *Renewers) of(name string, call func(*renewer)) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r := all.renewers[name]; r != nil {
		call(r.renewer)
	}
}
