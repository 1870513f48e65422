package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig"
)

const (
	soakNamespace  = "bench-soak"
	trialNamespace = "bench-trial"
	// soakEnd is how long the last Jobs may take to end, and to be gone.
	soakEnd = 5 * time.Minute
)

// soak is one run under steady load.
type soak struct {
	options SoakOptions
	fleet   *fleet
	leaders *leaders
	load    *load
	result  report.Soak
}

// RunSoak submits Jobs steadily, while users edit and delete some, credentials are rotated and
// leaders end.
func RunSoak(ctx context.Context, o SoakOptions) (*report.Soak, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &soak{options: o, result: report.Soak{Workers: o.Workers, Machine: measure.Machine(), Duration: o.Duration}}
	o.Progress("starting a hub and %d workers", o.Workers)
	workers := plainWorkers(o.Workers, o.AtATime+int(100*o.TTL.Seconds()))
	err := onGround(ctx, o.Manager, rig.Options{Name: "hub"}, workers, []string{soakNamespace, trialNamespace}, func(g ground) (err error) {
		s.fleet = g.fleet
		if s.leaders, err = startLeaders(ctx, g.product, g.fleet, o); err != nil {
			return err
		}
		return errors.Join(s.run(ctx), s.leaders.stop())
	})
	return &s.result, err
}

func (s *soak) run(ctx context.Context) error {
	if err := s.chooseRate(ctx); err != nil {
		return err
	}
	v, err := watchAll(ctx, s.fleet, soakNamespace)
	if err != nil {
		return err
	}
	defer v.stop()
	s.load = &load{hub: s.fleet.hub, namespace: soakNamespace, ttl: s.options.TTL, rate: s.result.Rate}
	s.options.Progress("%.1f Jobs per second for %s", s.result.Rate, s.options.Duration)
	if err := s.bearLoad(ctx); err != nil {
		return err
	}
	return s.judge(ctx, v)
}

// chooseRate finds out how many Jobs per second the machine does, with those that are removed
// meanwhile, and takes four fifths of that.
func (s *soak) chooseRate(ctx context.Context) error {
	if s.result.Rate = s.options.Rate; s.result.Rate > 0 {
		return nil
	}
	v, err := watchAll(ctx, s.fleet, trialNamespace)
	if err != nil {
		return err
	}
	defer v.stop()
	l := &load{hub: s.fleet.hub, namespace: trialNamespace, ttl: s.options.TTL}
	all, err := l.saturate(ctx, v.hub, s.options.AtATime, s.options.Trial)
	if err != nil {
		return err
	}
	s.result.Rate = all * 4 / 5
	return v.awaitGone(ctx)
}

// bearLoad returns when all Jobs were submitted.
func (s *soak) bearLoad(ctx context.Context) error {
	during, cancel := context.WithTimeout(ctx, s.options.Duration)
	defer cancel()
	tasks, during := errgroup.WithContext(during)
	for _, task := range []func(context.Context) error{
		s.load.submit, s.leaders.sample,
		func(ctx context.Context) error { return every(ctx, s.options.Leaders, s.leaders.change) },
		func(ctx context.Context) error { return every(ctx, s.options.Rotations, s.rotate) },
	} {
		tasks.Go(func() error {
			err := task(during)
			if during.Err() != nil && errors.Is(context.Cause(during), context.DeadlineExceeded) {
				return nil // the time is up
			}
			return err
		})
	}
	return tasks.Wait()
}

// rotate gives the hub new credentials of one worker, by turns.
func (s *soak) rotate(ctx context.Context, n int) error {
	return rotate(ctx, s.fleet.hub, s.fleet.workers[n%len(s.fleet.workers)], fmt.Sprintf("%s-%d", managerUser, n))
}

// every calls a function again and again, with the number of the call, until the context ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context, int) error) error {
	for n := 0; ; n++ {
		if err := pause(ctx, interval); err != nil {
			return err
		}
		if err := do(ctx, n); err != nil {
			return err
		}
	}
}

// judge waits for the last Jobs, and takes the figures.
func (s *soak) judge(ctx context.Context, v *views) error {
	ctx, cancel := context.WithTimeout(ctx, soakEnd)
	defer cancel()
	s.options.Progress("the last of %d Jobs", s.load.submitted())
	unfinished, err := s.load.awaitEnds(ctx, v.hub)
	if err != nil {
		return err
	}
	silent, err := s.load.withoutEvents(ctx)
	if err != nil {
		return err
	}
	r := &s.result
	r.AddTime("worker status -> hub status, p99", measure.QuantilesOf(v.lag()).P99, 0)
	r.AddTime("the same while no leader ended, p50", s.quantiles(v).P50, 0)
	r.AddTime("the same while no leader ended, p99", s.quantiles(v).P99, time.Second)
	r.AddTime("of starts, p99", s.quantiles(v, measure.Started).P99, 0)
	r.AddTime("of ends, p99", s.quantiles(v, measure.Complete).P99, 0)
	r.Add("leaders that ended", float64(len(s.leaders.changes)), report.Count, 0)
	r.AddTime("until the next one placed a Job, at most", s.leaders.longest(), 3*time.Second)
	r.AddNone("Jobs that didn't end", unfinished)
	// A leader that ends leaves what it can't write within two seconds, and says so.
	r.AddNone("Jobs without an event of the manager's, but for those that leaders left", max(0, silent-s.leaders.unwritten))
	gone := func() int {
		left := v.hub.There()
		for _, w := range v.workers {
			left += w.There()
		}
		return left
	}
	for ctx.Err() == nil && gone() > 0 {
		_ = pause(ctx, time.Second) // what's left is counted
	}
	r.AddNone("Jobs and mirrors that were left", gone())
	s.addTrend("heap", s.leaders.heap, report.Megabyte)
	s.addTrend("goroutines", s.leaders.goroutines, report.Count)
	return nil
}

// quantiles are the lags in the times when a leader led: of all stages, or of some.
func (s *soak) quantiles(v *views, stages ...measure.Stage) measure.Quantiles {
	var all []time.Duration
	for _, d := range v.delays() {
		if (len(stages) == 0 || slices.Contains(stages, d.Stage)) && !slices.ContainsFunc(s.leaders.changes, func(c leaderChange) bool { return c.affects(d) }) {
			all = append(all, d.Took)
		}
	}
	return measure.QuantilesOf(all)
}

// steady is how much a value may grow in an hour, as a share, if that can be told from noise.
const steady = 0.05

func (s *soak) addTrend(name string, series [][]measure.Sample, unit report.Unit) {
	trend := measure.TrendOf(series...)
	s.result.Add(name+" of the leaders, on average", trend.Mean, unit, 0)
	s.result.Add(name+": the noise of its growth in an hour", trend.Noise, unit, 0)
	s.result.Add(name+": growth in an hour; at most a twentieth, or the noise", trend.PerHour, unit, max(trend.Noise, steady*trend.Mean))
}
