package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig/process"
)

// Namespaces of the phases.
const (
	floorNamespace   = "bench-floor"
	boundNamespace   = "bench-bound"
	writesNamespace  = "bench-writes"
	singlesNamespace = "bench-singles"
	restNamespace    = "bench-rest"
	floodNamespace   = "bench-flood"
	peerNamespace    = "bench-peer"

	peerSinglesNamespace = "bench-peer-singles"
)

// settle is how long the manager may tidy up after the flood: it writes the events that have
// waited, and the numbers of WorkerClusters every few seconds.
const settle = 10 * time.Second

// floor submits Jobs straight into a worker, and removes them when they're Complete. Nil: it's not
// to be measured.
func (r *run) floor(ctx context.Context) (*report.Burst, error) {
	if !r.options.Floor {
		return nil, nil
	}
	r.options.Progress("floor: %d Jobs straight into one worker", r.options.Jobs)
	worker := r.fleet.workers[0]
	jobs, stop, err := measure.Watch(ctx, worker.client, floorNamespace)
	if err != nil {
		return nil, err
	}
	defer stop()
	floor, _, err := r.burst(ctx, "floor", floorNamespace, worker, jobs, r.options.sized)
	if err != nil {
		return nil, err
	}
	if err := worker.remove(ctx, r.options.Submitters, floorNamespace, names(r.options.Jobs)); err != nil {
		return nil, err
	}
	return floor, jobs.AwaitGone(ctx)
}

// burst submits all Jobs at once, and returns when all are Complete, with when each was sent.
func (r *run) burst(
	ctx context.Context, phase, namespace string, to *site, jobs *measure.Timeline, options ...option,
) (*report.Burst, map[string]time.Time, error) {
	before, err := r.cpu()
	if err != nil {
		return nil, nil, err
	}
	profiled := r.profile(ctx, phase)
	b, began := &report.Burst{}, time.Now()
	sent, err := to.create(ctx, r.options.Submitters, namespace, names(r.options.Jobs), options...)
	if err != nil {
		return nil, nil, err
	}
	b.Submitted = time.Since(began)
	if err := jobs.Await(ctx, r.options.Jobs, measure.Complete); err != nil {
		return nil, nil, fmt.Errorf("%d of %d Jobs are Complete: %w", jobs.Reached(measure.Complete), r.options.Jobs, err)
	}
	b.Complete = time.Since(began)
	after, err := r.cpu()
	if err != nil {
		return nil, nil, err
	}
	b.CPU = after.Since(before)
	return b, sent, <-profiled
}

// cpu is what all processes have used so far.
func (r *run) cpu() (report.CPU, error) {
	used, err := r.fleet.cpu()
	if err != nil {
		return used, err
	}
	self, err := process.UsageOf(os.Getpid())
	used.Bench = self.CPU
	if err != nil || r.manager == nil {
		return used, err
	}
	manager, err := r.manager.Usage()
	used.Manager = manager.CPU
	return used, err
}

// warmUp waits until the manager that was just started dispatches: one Job goes all the way.
func (r *run) warmUp(ctx context.Context, round int) error {
	_, err := r.oneByOne(ctx, singlesNamespace, []string{fmt.Sprintf("warm-up-%d", round)}, dispatched)
	return err
}

// singles submits one Job after another, each when the one before is Complete.
func (r *run) singles(ctx context.Context) (err error) {
	r.result.Singles, err = r.oneByOne(ctx, singlesNamespace, names(r.options.Singles), dispatched)
	return err
}

func (r *run) oneByOne(ctx context.Context, namespace string, jobs []string, options ...option) (report.Latencies, error) {
	v, err := watchAll(ctx, r.fleet, namespace)
	if err != nil {
		return report.Latencies{}, err
	}
	defer v.stop()
	sent := map[string]time.Time{}
	for _, name := range jobs {
		at, err := r.fleet.hub.create(ctx, 1, namespace, []string{name}, options...)
		if err != nil {
			return report.Latencies{}, err
		}
		if err := v.hub.AwaitJob(ctx, name, measure.Complete); err != nil {
			return report.Latencies{}, err
		}
		sent[name] = at[name]
	}
	return v.latencies(sent), nil
}

// rest starts the Jobs that run all along.
func (r *run) rest(ctx context.Context) error {
	jobs, stop, err := measure.Watch(ctx, r.fleet.hub.client, restNamespace)
	if err != nil {
		return err
	}
	defer stop()
	all := names(r.options.Resting)
	if _, err := r.fleet.hub.create(ctx, r.options.Submitters, restNamespace, all, dispatched, forever); err != nil {
		return err
	}
	return jobs.Await(ctx, len(all), measure.Ready)
}

// flood submits all Jobs to the hub.
func (r *run) flood(ctx context.Context, v *views) error {
	flood, sent, err := r.burst(ctx, "flood", floodNamespace, r.fleet.hub, v.hub, dispatched, r.options.sized)
	if err != nil {
		return err
	}
	r.round.Flood = *flood
	r.round.AtOnce = v.latencies(sent)
	r.round.Overtaken = measure.Overtaken(v.hub, v.workers...)
	return r.profileHeap(ctx)
}

// quiet does nothing, and notes when.
func (r *run) quiet(ctx context.Context) error {
	if r.options.Quiet == 0 {
		return nil
	}
	r.options.Progress("quiet: %s", r.options.Quiet)
	r.quietFrom = time.Now()
	err := pause(ctx, r.options.Quiet)
	r.quietTo = time.Now()
	return err
}

// removal deletes the Jobs of the flood, and waits until the hub has let them go.
func (r *run) removal(ctx context.Context, v *views) error {
	began := time.Now()
	if err := r.fleet.hub.remove(ctx, r.options.Submitters, floodNamespace, names(r.options.Jobs)); err != nil {
		return err
	}
	if err := v.hub.AwaitGone(ctx); err != nil {
		return err
	}
	r.round.Removal = time.Since(began)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
