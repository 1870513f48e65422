package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

// Namespaces of the phases.
const (
	floorNamespace   = "bench-floor"
	singlesNamespace = "bench-singles"
	restNamespace    = "bench-rest"
	floodNamespace   = "bench-flood"
)

// settle is how long the manager may tidy up before it has to be quiet: it writes the numbers of WorkerClusters every
// few seconds.
const settle = 10 * time.Second

// floor submits Jobs straight into a worker, and removes them when they're Complete.
func (r *run) floor(ctx context.Context) error {
	worker := r.fleet.workers[0]
	if err := makeNamespace(ctx, floorNamespace, worker); err != nil {
		return err
	}
	jobs, stop, err := measure.Watch(ctx, worker.client, floorNamespace)
	if err != nil {
		return err
	}
	defer stop()
	cpu, err := r.fleet.cpu()
	if err != nil {
		return err
	}
	profiled := r.profile(ctx, "floor")
	began, all := time.Now(), names(r.options.Jobs)
	if _, err := worker.create(ctx, r.options.Submitters, floorNamespace, all); err != nil {
		return err
	}
	submitted := time.Since(began)
	if err := jobs.Await(ctx, len(all), measure.Complete); err != nil {
		return err
	}
	r.result.Floor = &report.Burst{Submitted: submitted, Complete: time.Since(began)}
	if r.result.Floor.ClustersCPU, err = r.clustersCPUSince(cpu); err != nil {
		return err
	}
	if err := <-profiled; err != nil {
		return err
	}
	if err := worker.remove(ctx, r.options.Submitters, floorNamespace, all); err != nil {
		return err
	}
	return jobs.AwaitGone(ctx)
}

// singles submits one Job after another, each when the one before is Complete. The first warms connections up, and
// isn't counted.
func (r *run) singles(ctx context.Context) error {
	if err := makeNamespace(ctx, singlesNamespace, r.fleet.all()...); err != nil {
		return err
	}
	v, err := watchAll(ctx, r.fleet, singlesNamespace)
	if err != nil {
		return err
	}
	defer v.stop()
	sent := map[string]time.Time{}
	for i, name := range names(r.options.Singles + 1) {
		at, err := r.fleet.hub.create(ctx, 1, singlesNamespace, []string{name}, dispatched)
		if err != nil {
			return err
		}
		if err := v.hub.AwaitJob(ctx, name, measure.Complete); err != nil {
			return err
		}
		if i > 0 {
			sent[name] = at[name]
		}
	}
	r.result.Singles = report.Latencies{
		Mirror: measure.QuantilesOf(v.sinceSent(sent, measure.Created)),
		Lag:    measure.QuantilesOf(v.lag()),
	}
	return nil
}

// rest starts the Jobs that run all along.
func (r *run) rest(ctx context.Context) error {
	if err := makeNamespace(ctx, restNamespace, r.fleet.all()...); err != nil {
		return err
	}
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

// flood submits all Jobs at once.
func (r *run) flood(ctx context.Context, v *views) error {
	clusters, err := r.fleet.cpu()
	if err != nil {
		return err
	}
	before, err := r.manager.usage()
	if err != nil {
		return err
	}
	profiled := r.profile(ctx, "flood")
	began, all := time.Now(), names(r.options.Jobs)
	sent, err := r.fleet.hub.create(ctx, r.options.Submitters, floodNamespace, all, dispatched)
	if err != nil {
		return err
	}
	r.result.Flood.Submitted = time.Since(began)
	if err := v.hub.Await(ctx, len(all), measure.Complete); err != nil {
		return fmt.Errorf("%d of %d Jobs are Complete: %w", v.hub.Reached(measure.Complete), len(all), err)
	}
	r.result.Flood.Complete = time.Since(began)
	r.result.AtOnce = report.Latencies{
		Mirror: measure.QuantilesOf(v.sinceSent(sent, measure.Created)),
		Lag:    measure.QuantilesOf(v.lag()),
	}
	after, err := r.manager.usage()
	if err != nil {
		return err
	}
	r.result.Manager.FloodCPU = after.CPU - before.CPU
	if r.result.Flood.ClustersCPU, err = r.clustersCPUSince(clusters); err != nil {
		return err
	}
	return errors.Join(<-profiled, r.profileHeap(ctx))
}

// quiet does nothing, and notes when.
func (r *run) quiet(ctx context.Context) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
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
	r.result.Removal = time.Since(began)
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

func (r *run) clustersCPUSince(before map[string]time.Duration) (map[string]time.Duration, error) {
	used, err := r.fleet.cpu()
	for program := range used {
		used[program] -= before[program]
	}
	return used, err
}
