package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig"
)

// run is one run of the benchmark.
type run struct {
	options FloodOptions
	fleet   *fleet
	manager *manager // that of this round
	// profiles is where the managers serve theirs; empty: nowhere.
	profiles string
	round    *report.Round
	result   report.Result

	quietFrom, quietTo time.Time
}

// RunFlood starts clusters, measures, and stops them.
func RunFlood(ctx context.Context, options FloodOptions) (_ *report.Result, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jobferry-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{options: options, result: report.Result{
		Jobs: options.Jobs, Workers: options.Workers, Resting: options.Resting, Machine: measure.Machine(), Quiet: options.Quiet,
	}}
	options.Progress("starting a hub and %d workers", options.Workers)
	if r.fleet, err = startFleet(ctx, options); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.fleet.stop()) }()
	for _, namespace := range []string{floorNamespace, boundNamespace, writesNamespace, singlesNamespace, restNamespace, floodNamespace} {
		if err := makeNamespace(ctx, namespace, r.fleet.all()...); err != nil {
			return nil, err
		}
	}
	product, err := installManager(ctx, r.fleet, options.Manager, dir)
	if err != nil {
		return nil, err
	}
	if options.Profiles != "" || options.Against != "" {
		if r.profiles, err = r.fleet.reserveProfiles(); err != nil {
			return nil, err
		}
	}
	if options.Bound {
		options.Progress("writes: one kind after the other")
		if err := r.eachWrites(ctx); err != nil {
			return nil, fmt.Errorf("writes: %w", err)
		}
	}
	if err := r.rounds(ctx, product); err != nil {
		return nil, err
	}
	return &r.result, r.conclude()
}

// rounds goes all rounds, with each of the managers.
func (r *run) rounds(ctx context.Context, product installed) error {
	for n := range r.options.Rounds {
		for _, t := range r.turns(product, n) {
			r.result.Rounds = append(r.result.Rounds, report.Round{IsBase: t.isBase})
			r.round = &r.result.Rounds[len(r.result.Rounds)-1]
			if err := r.do(ctx, t.product, n); err != nil {
				return fmt.Errorf("round %d: %w", n+1, err)
			}
		}
	}
	return nil
}

// do goes one round. The manager starts after the floor, whose Jobs it would watch. What is
// measured once is in the last round.
func (r *run) do(ctx context.Context, product installed, n int) (err error) {
	if r.options.Floor {
		r.options.Progress("floor: %d Jobs straight into one worker", r.options.Jobs)
		if err := r.floor(ctx); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
	}
	if r.options.Bound {
		r.options.Progress("bound: the least writes for %d Jobs", r.options.Jobs)
		if err := r.bound(ctx); err != nil {
			return fmt.Errorf("bound: %w", err)
		}
	}
	if r.manager, err = startManager(product, r.profiles, r.options.ManagerFlags); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.manager.stop()); r.manager = nil }()
	ctx, cancel := r.manager.whileRuns(ctx)
	defer cancel()
	if err := awaitWorkers(ctx, r.fleet); err != nil {
		return err
	}
	if err := r.warmUp(ctx, len(r.result.Rounds)); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	began := time.Now()
	if err := r.phases(ctx, n == r.options.Rounds-1); err != nil {
		return err
	}
	if err := errors.Join(r.account(ctx), r.countRound(began)); err != nil {
		return err
	}
	usage, err := r.manager.usage()
	r.result.PeakMemory = max(r.result.PeakMemory, usage.PeakRSS)
	return err
}

func (r *run) phases(ctx context.Context, last bool) error {
	if !last {
		return r.flooded(ctx, nil)
	}
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
	return r.flooded(ctx, r.quiet)
}

// flooded submits all Jobs at once, does something meanwhile that they are finished, and removes
// them.
func (r *run) flooded(ctx context.Context, finished func(context.Context) error) error {
	v, err := watchAll(ctx, r.fleet, floodNamespace)
	if err != nil {
		return err
	}
	defer v.stop()
	r.options.Progress("flood: %d Jobs at once", r.options.Jobs)
	if err := r.flood(ctx, v); err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if finished != nil {
		if err := finished(ctx); err != nil {
			return err
		}
	}
	r.options.Progress("removal: the %d Jobs are deleted", r.options.Jobs)
	if err := r.removal(ctx, v); err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	return nil
}

// conclude takes what is known at the end only: the requests.
func (r *run) conclude() error {
	hub, err := managerRequests(r.fleet.hub)
	if err != nil {
		return err
	}
	workers, err := managerRequests(r.fleet.workers...)
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

// managerRequests are those of the manager to some clusters.
func managerRequests(sites ...*site) ([]rig.Request, error) {
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
