package bench

import (
	"context"
	"errors"
	"fmt"
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
func RunFlood(ctx context.Context, o FloodOptions) (*report.Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &run{options: o, result: report.Result{
		Jobs: o.Jobs, Pods: o.Completions, Shows: o.Pods, Workers: o.Workers, Resting: o.Resting, Machine: measure.Machine(), Quiet: o.Quiet,
	}}
	o.Progress("starting a hub and %d workers", o.Workers)
	hub, workers := o.clusters()
	namespaces := []string{floorNamespace, boundNamespace, writesNamespace, singlesNamespace, restNamespace, floodNamespace, peerSinglesNamespace, peerNamespace}
	err := onGround(ctx, o.Manager, hub, workers, namespaces, func(g ground) error {
		r.fleet = g.fleet
		return r.all(ctx, g.product)
	})
	return &r.result, err
}

// all is what is measured.
func (r *run) all(ctx context.Context, product installed) (err error) {
	if r.options.Profiles != "" || r.options.compares() {
		if r.profiles, err = r.fleet.reserveProfiles(); err != nil {
			return err
		}
	}
	if r.options.Bound {
		r.options.Progress("writes: one kind after the other")
		if err := r.eachWrites(ctx); err != nil {
			return fmt.Errorf("writes: %w", err)
		}
	}
	if err := r.rounds(ctx, product); err != nil {
		return err
	}
	if r.options.Peer {
		if err := r.peer(ctx, product.dir); err != nil {
			return fmt.Errorf("MultiKueue: %w", err)
		}
	}
	return r.conclude()
}

// rounds goes all rounds, with each of the managers.
func (r *run) rounds(ctx context.Context, product installed) error {
	for n := range r.options.Rounds {
		for _, t := range r.turns(product, n) {
			r.result.Rounds = append(r.result.Rounds, report.Round{IsBase: t.isBase})
			r.round = &r.result.Rounds[len(r.result.Rounds)-1]
			if err := r.do(ctx, t, n); err != nil {
				return fmt.Errorf("round %d: %w", n+1, err)
			}
		}
	}
	return nil
}

// do goes one round. The manager starts after the floor, whose Jobs it would watch. What is
// measured once is in the last round, with the manager that isn't compared with.
func (r *run) do(ctx context.Context, t turn, n int) (err error) {
	if r.round.Floor, err = r.floor(ctx); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	if r.options.Bound {
		r.options.Progress("bound: the least writes for %d Jobs", r.options.Jobs)
		if err := r.bound(ctx); err != nil {
			return fmt.Errorf("bound: %w", err)
		}
	}
	flags, err := r.show(ctx, t.shows)
	if err != nil {
		return err
	}
	if r.manager, err = startManager(t.product, r.profiles, append(flags, r.options.ManagerFlags...)); err != nil {
		return err
	}
	defer func() { r.manager = nil }()
	return r.manager.whileRuns(ctx, func(ctx context.Context) error { return r.measure(ctx, t, n) })
}

// measure goes the phases of a round for which the manager runs.
func (r *run) measure(ctx context.Context, t turn, n int) error {
	if err := awaitWorkers(ctx, r.fleet); err != nil {
		return err
	}
	if err := r.warmUp(ctx, len(r.result.Rounds)); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	began := time.Now()
	if err := r.phases(ctx, n == r.options.Rounds-1 && !t.isBase); err != nil {
		return err
	}
	if err := errors.Join(r.account(ctx), r.countRound(began)); err != nil {
		return err
	}
	usage, err := r.manager.Usage()
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
	hub, err := requestsOf(managerUser, r.fleet.hub)
	if err != nil {
		return err
	}
	workers, err := requestsOf(managerUser, r.fleet.workers...)
	if err != nil {
		return err
	}
	statuses, err := requestsOf(jobController, r.fleet.workers...)
	if err != nil {
		return err
	}
	inFlood := audit.In(floodNamespace)
	r.result.Statuses = len(audit.Select(statuses, inFlood, audit.Passed, audit.WritesStatus))
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

// requestsOf are those of a user to some clusters.
func requestsOf(user string, sites ...*site) ([]rig.Request, error) {
	var all []rig.Request
	for _, s := range sites {
		requests, err := s.Requests()
		if err != nil {
			return nil, err
		}
		all = append(all, audit.Select(requests, audit.By(user))...)
	}
	return all, nil
}
