package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/e2e/chaos/inject"
	"github.com/jobferry/jobferry/e2e/chaos/report"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
)

// Plan is what a seed makes.
type Plan struct {
	Stories []story.Story
	Faults  []schedule.Fault
}

// MakePlan makes the plan of a run.
func MakePlan(o Options) (Plan, error) {
	o, err := o.complete()
	if err != nil {
		return Plan{}, err
	}
	// Two streams of numbers: with other faults, the Jobs stay the same.
	stories, err := story.Make(rand.New(rand.NewPCG(o.Seed, 1)), fleet.Namespaces(), o.Jobs, o.Span*9/10, o.JobKinds...)
	if err != nil {
		return Plan{}, err
	}
	faults, err := schedule.Make(rand.New(rand.NewPCG(o.Seed, 2)), schedule.Options{
		Faults: o.Faults, Span: o.Span, Managers: fleet.ManagerNames(), Workers: fleet.WorkerNames(),
		Losing: o.losing(), Only: o.FaultKinds,
	})
	return Plan{Stories: stories, Faults: faults}, err
}

// run is one run.
type run struct {
	options  Options
	plan     Plan
	fleet    *fleet.Fleet
	recorder *recorder
	// ledger is that before the Jobs were removed.
	ledger checker.Ledger
}

// Run makes a run, and returns what came out.
func Run(ctx context.Context, options Options) (_ *report.Result, err error) {
	options, err = options.complete()
	if err != nil {
		return nil, err
	}
	r := &run{options: options}
	if r.plan, err = MakePlan(options); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jobferry-chaos-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.recorder = newRecorder(r.plan.Stories, options)
	options.Progress("building, and starting a hub, two managers and three workers")
	r.fleet, err = fleet.Start(ctx, fleet.Options{
		Dir: dir, LostAfter: options.LostAfter, FenceAfter: options.FenceAfter,
		Ended: r.recorder.ended,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := r.fleet.Stop(); stopped != nil && err == nil {
			r.options.Progress("%v", stopped) // a process that ended last isn't a finding
		}
	}()
	return r.live(ctx)
}

// live is the run while the fleet is there.
func (r *run) live(ctx context.Context) (*report.Result, error) {
	watching, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	if err := r.recorder.open(watching, r.fleet, &watches); err != nil {
		return nil, err
	}
	if r.options.Samples != "" {
		file, err := os.Create(r.options.Samples)
		if err != nil {
			return nil, err
		}
		watches.Go(func() {
			if err := errors.Join(sample(watching, r.fleet.Managers, file), file.Close()); err != nil {
				r.options.Progress("the samples are incomplete: %v", err)
			}
		})
	}
	began := time.Now()
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"the Jobs and the faults", r.turmoil}, {"the last Jobs' end", r.settle},
		{"the Jobs' removal", r.remove}, {"the workers' removal", r.unregister}, {"the hub's audit log", r.audit},
	} {
		if err := phase.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return r.result(time.Since(began)), nil
}

// turmoil: users act, and faults come and go.
func (r *run) turmoil(ctx context.Context) error {
	r.options.Progress("%d Jobs and %d faults in %s (seed %d)", r.options.Jobs, r.options.Faults, r.options.Span, r.options.Seed)
	reporting, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { r.recorder.reportProgress(reporting, r.options.Progress) })
	var acting sync.WaitGroup
	u := users{batch: r.fleet.Hub.Client().BatchV1(), recorder: r.recorder, writing: r.fleet.Writing, began: time.Now()}
	for i := range r.plan.Stories {
		acting.Go(func() { u.play(ctx, &r.plan.Stories[i]) })
	}
	inject.Run(ctx, r.fleet, r.plan.Faults, r.recorder)
	acting.Wait()
	stop()
	tasks.Wait()
	return ctx.Err()
}

// settle waits until all Jobs have come to their end, as long as some do: how many run at once is
// limited, and a slow machine takes its time.
func (r *run) settle(ctx context.Context) error {
	left := len(r.recorder.pending())
	r.options.Progress("all faults are over; %d Jobs have not ended", left)
	for left > 0 && until(ctx, r.options.Settle, func() bool { return len(r.recorder.pending()) < left }) {
		left = len(r.recorder.pending())
	}
	if left > 0 {
		r.options.Progress("%d Jobs have not ended, and none has for %s", left, r.options.Settle)
	}
	until(ctx, catchUp, func() bool { return false })
	until(ctx, showTime, func() (all bool) {
		r.recorder.do(func(c *checker.Checker, _ time.Duration) { all = c.WronglyShown() == 0 })
		return all
	})
	r.recorder.do(func(c *checker.Checker, at time.Duration) {
		c.CheckEnds(at)
		r.ledger = c.Ledger()
	})
	return ctx.Err()
}

func (r *run) result(took time.Duration) *report.Result {
	result := &report.Result{Seed: r.options.Seed, Jobs: r.options.Jobs, Took: took, Faults: r.plan.Faults, Ledger: r.ledger}
	r.recorder.do(func(c *checker.Checker, _ time.Duration) {
		result.Figures, result.Violations = c.Figures(), c.Violations()
		result.Lines, result.Troubles = c.Lines, c.Troubles
	})
	return result
}

// catchUp is how long all watches have to show what the last one has shown, and the manager to
// complete the accounts of the last Jobs: it looks at them again a few seconds after their ends.
const catchUp = 10 * time.Second

// showTime is how long the hub may take to show all Pods as they are, and the checker to find that
// it doesn't.
const showTime = 45 * time.Second

// pollEvery is how often the end of something is looked for that nobody reports.
const pollEvery = 200 * time.Millisecond

// until looks again and again, and is false if the time is up.
func until(ctx context.Context, limit time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return holds()
		}
	}
	return true
}
