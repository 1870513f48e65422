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

// settle is how long the manager may tidy up after the flood: it writes the events that have
// waited, and the numbers of WorkerClusters every few seconds.
const settle = 10 * time.Second

// floor submits Jobs straight into a worker, and removes them when they're Complete.
func (r *run) floor(ctx context.Context) error {
	worker := r.fleet.workers[0]
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
	r.round.Floor = &report.Burst{Submitted: submitted, Complete: time.Since(began)}
	if r.round.Floor.ClustersCPU, err = r.fleet.cpuSince(cpu); err != nil {
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

// warmUp waits until the manager that was just started dispatches: one Job goes all the way.
func (r *run) warmUp(ctx context.Context, round int) error {
	_, err := r.oneByOne(ctx, []string{fmt.Sprintf("warm-up-%d", round)})
	return err
}

// singles submits one Job after another, each when the one before is Complete.
func (r *run) singles(ctx context.Context) (err error) {
	r.result.Singles, err = r.oneByOne(ctx, names(r.options.Singles))
	return err
}

func (r *run) oneByOne(ctx context.Context, jobs []string) (report.Latencies, error) {
	v, err := watchAll(ctx, r.fleet, singlesNamespace)
	if err != nil {
		return report.Latencies{}, err
	}
	defer v.stop()
	sent := map[string]time.Time{}
	for _, name := range jobs {
		at, err := r.fleet.hub.create(ctx, 1, singlesNamespace, []string{name}, dispatched)
		if err != nil {
			return report.Latencies{}, err
		}
		if err := v.hub.AwaitJob(ctx, name, measure.Complete); err != nil {
			return report.Latencies{}, err
		}
		sent[name] = at[name]
	}
	return report.Latencies{
		Mirror: measure.QuantilesOf(v.sinceSent(sent, measure.Created)),
		Lag:    measure.QuantilesOf(v.lag()),
	}, nil
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
	r.round.Flood.Submitted = time.Since(began)
	if err := v.hub.Await(ctx, len(all), measure.Complete); err != nil {
		return fmt.Errorf("%d of %d Jobs are Complete: %w", v.hub.Reached(measure.Complete), len(all), err)
	}
	r.round.Flood.Complete = time.Since(began)
	r.round.AtOnce = report.Latencies{
		Mirror: measure.QuantilesOf(v.sinceSent(sent, measure.Created)),
		Lag:    measure.QuantilesOf(v.lag()),
	}
	after, err := r.manager.usage()
	if err != nil {
		return err
	}
	r.round.ManagerCPU = after.CPU - before.CPU
	if r.round.Flood.ClustersCPU, err = r.fleet.cpuSince(clusters); err != nil {
		return err
	}
	return errors.Join(<-profiled, r.profileHeap(ctx))
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
