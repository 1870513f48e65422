package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig"
)

// run is one run of the benchmark.
type run struct {
	options Options
	fleet   *fleet
	manager *manager
	result  report.Result

	quietFrom, quietTo time.Time
}

// Run starts clusters, measures, and stops them.
func Run(ctx context.Context, options Options) (_ *report.Result, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jobferry-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{options: options, result: report.Result{
		Jobs: options.Jobs, Workers: options.Workers, Resting: options.Resting, Cores: runtime.NumCPU(), Quiet: options.Quiet,
	}}
	options.Progress("starting a hub and %d workers", options.Workers)
	if r.fleet, err = startFleet(ctx, options); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.fleet.stop()) }()
	if options.Floor {
		options.Progress("floor: %d Jobs straight into one worker", options.Jobs)
		if err := r.floor(ctx); err != nil {
			return nil, fmt.Errorf("floor: %w", err)
		}
	}
	return &r.result, r.withManager(ctx, dir)
}

// withManager measures what there's a manager for.
func (r *run) withManager(ctx context.Context, dir string) (err error) {
	source, err := product(ctx)
	if err != nil {
		return err
	}
	program := r.options.Manager
	if program == "" {
		r.options.Progress("building the manager")
		if program, err = buildManager(ctx, source, dir); err != nil {
			return err
		}
	}
	kubeconfig, err := install(ctx, r.fleet, source, dir)
	if err != nil {
		return err
	}
	if r.manager, err = startManager(program, dir, kubeconfig, r.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.manager.stop()) }()
	ctx, cancel := r.manager.whileRuns(ctx)
	defer cancel()
	if err := awaitWorkers(ctx, r.fleet); err != nil {
		return err
	}
	if err := r.phases(ctx); err != nil {
		return err
	}
	return r.conclude()
}

func (r *run) phases(ctx context.Context) error {
	o := r.options
	if o.Singles > 0 {
		o.Progress("singles: %d Jobs one at a time", o.Singles)
		if err := r.singles(ctx); err != nil {
			return fmt.Errorf("singles: %w", err)
		}
	}
	if err := r.rest(ctx); err != nil {
		return fmt.Errorf("the Jobs that run all along: %w", err)
	}
	if err := makeNamespace(ctx, floodNamespace, r.fleet.all()...); err != nil {
		return err
	}
	v, err := watchAll(ctx, r.fleet, floodNamespace)
	if err != nil {
		return err
	}
	defer v.stop()
	o.Progress("flood: %d Jobs at once", o.Jobs)
	if err := r.flood(ctx, v); err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	if o.Quiet > 0 {
		o.Progress("quiet: %s", o.Quiet)
		if err := r.quiet(ctx); err != nil {
			return err
		}
	}
	o.Progress("removal: the %d Jobs are deleted", o.Jobs)
	if err := r.removal(ctx, v); err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	return nil
}

// conclude takes what is known at the end only: requests, and the most memory held.
func (r *run) conclude() error {
	usage, err := r.manager.usage()
	if err != nil {
		return err
	}
	r.result.Manager.PeakRSS, r.result.Manager.CPU = usage.PeakRSS, usage.CPU
	hub, err := r.managerRequests(r.fleet.hub)
	if err != nil {
		return err
	}
	workers, err := r.managerRequests(r.fleet.workers...)
	if err != nil {
		return err
	}
	inFlood := audit.In(floodNamespace)
	r.result.Requests = append(audit.Tally("hub", audit.Select(hub, inFlood)), audit.Tally("workers", audit.Select(workers, inFlood))...)
	atRest := audit.Between(r.quietFrom, r.quietTo)
	inQuiet := func(requests []rig.Request) []rig.Request {
		return audit.Select(requests, atRest, audit.Not(audit.IsUpkeep))
	}
	r.result.QuietRequests = append(audit.Tally("hub", inQuiet(hub)), audit.Tally("workers", inQuiet(workers))...)
	r.result.Upkeep = append(audit.Tally("hub", audit.Select(hub, atRest, audit.IsUpkeep)),
		audit.Tally("workers", audit.Select(workers, atRest, audit.IsUpkeep))...)
	return nil
}

func (r *run) managerRequests(sites ...*site) ([]rig.Request, error) {
	var all []rig.Request
	for _, s := range sites {
		requests, err := s.Requests()
		if err != nil {
			return nil, err
		}
		all = append(all, audit.Select(requests, audit.By(managerUser))...)
	}
	return all, nil
}
