package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// faults has a leader end, watches break, a worker be slow, and workers be lost.
func (s *scale) faults(ctx context.Context) (err error) {
	leader, err := s.start(0)
	if err != nil {
		return err
	}
	if _, err := s.inControl(ctx); err != nil {
		return errors.Join(err, leader.stop())
	}
	for n := 1; ; n++ {
		standby, err := s.start(n % len(s.profiles))
		if err != nil {
			return errors.Join(err, leader.stop())
		}
		if n == s.options.Handovers {
			return standby.whileRuns(ctx, func(ctx context.Context) error { return s.breakAll(ctx, leader, standby) })
		}
		if err := s.handover(ctx, leader, standby); err != nil {
			return errors.Join(err, standby.stop())
		}
		leader = standby
	}
}

// breakAll ends the leader, and breaks what the next one depends on.
func (s *scale) breakAll(ctx context.Context, leader, m *manager) error {
	if err := s.handover(ctx, leader, m); err != nil {
		return err
	}
	s.result.AddTime(fmt.Sprintf("handover to the standby, the longest of %d", len(s.handovers)), slices.Max(s.handovers), 3*time.Second)
	for _, step := range []func() error{
		func() error { return s.breakWatches(ctx, m) },
		func() error { return s.slowWorker(ctx) },
		func() error { return s.loseWorkers(ctx, m) },
	} {
		if err := errors.Join(step(), s.awaitRest(ctx, m)); err != nil {
			return err
		}
	}
	return nil
}

// handover tells the leader to end, as soon as both managers have nothing to do.
func (s *scale) handover(ctx context.Context, leader, standby *manager) error {
	if err := errors.Join(s.awaitRest(ctx, leader), s.awaitRest(ctx, standby)); err != nil {
		return errors.Join(err, leader.stop())
	}
	began, stopped := time.Now(), make(chan error, 1)
	go func() { stopped <- leader.stop() }()
	at, err := s.inControl(ctx)
	s.handovers = append(s.handovers, at.Sub(began))
	s.options.Progress("the leader was told to end, and the standby was in control after %s", at.Sub(began).Round(time.Millisecond))
	return errors.Join(err, <-stopped)
}

// breakWatches breaks all watches of all workers at once, so that all is listed again.
func (s *scale) breakWatches(ctx context.Context, m *manager) error {
	s.options.Progress("all watches of all workers break")
	pid := m.PID()
	before, err := m.Usage()
	if err != nil {
		return err
	}
	const resetPeak = "5" // see proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(resetPeak), 0o200); err != nil {
		return err
	}
	watched := make([]int, len(s.workers))
	for i, c := range s.workers {
		watched[i] = c.Requests("watch jobs")
	}
	began := time.Now()
	for _, c := range s.workers {
		c.BreakWatches(false)
	}
	var first, last time.Duration
	if err := until(ctx, func() bool {
		again := 0
		for i, c := range s.workers {
			if c.Requests("watch jobs") > watched[i] {
				again++
			}
		}
		if first == 0 && again > 0 {
			first = time.Since(began)
		}
		last = time.Since(began)
		return again == len(s.workers)
	}); err != nil {
		return err
	}
	if err := s.awaitRest(ctx, m); err != nil {
		return err
	}
	after, err := m.Usage()
	s.result.AddTime("all watches broken: the first worker's Jobs are listed again after", first, 0)
	s.result.AddTime("all watches broken: the last worker's after", last, 0)
	s.result.Add("all watches broken: peak of memory, against before", float64(after.PeakRSS)/float64(before.RSS), report.Ratio, 1.5)
	return err
}

// slowWorker has one worker answer late, and compares how soon Jobs start in the others.
func (s *scale) slowWorker(ctx context.Context) error {
	before, err := s.dispatchAll(ctx, "usual")
	if err != nil {
		return err
	}
	s.options.Progress("one worker answers after %s", s.options.Slow)
	slow := s.workers[len(s.workers)-1] // none of those that will be lost
	slow.Delay(s.options.Slow)
	during, err := s.dispatchAll(ctx, "slow")
	slow.Delay(0)
	s.result.AddTime("create -> mirror, one after another, p50", before.P50, 0)
	s.result.AddTime("create -> mirror, one after another, p99", before.P99, 0)
	s.result.AddTime("the same while one worker is slow, p50", during.P50, 0)
	s.result.AddTime("the same while one worker is slow, p99", during.P99, max(2*before.P99, 100*time.Millisecond))
	return err
}

// dispatchAll submits Jobs one after another, and says how long each took to its mirror, but for
// those that were placed on the last worker, at first or in the end: it may be slow.
func (s *scale) dispatchAll(ctx context.Context, prefix string) (measure.Quantiles, error) {
	sent := map[string]time.Time{}
	all := make([]string, s.options.Singles)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", prefix, i)
		at, err := s.hub.create(ctx, 1, scaleNamespace, all[i:i+1], dispatched)
		if err != nil {
			return measure.Quantiles{}, err
		}
		sent[all[i]] = at[all[i]]
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return measure.Quantiles{}, err
		}
	}
	seen, err := s.seen.await(ctx, all...)
	if err != nil {
		return measure.Quantiles{}, err
	}
	var took []time.Duration
	for i, is := range seen {
		job, err := s.hub.client.BatchV1().Jobs(scaleNamespace).Get(ctx, all[i], metav1.GetOptions{})
		if err != nil {
			return measure.Quantiles{}, err
		}
		last := s.workers[len(s.workers)-1].Name()
		if hubstate.Get(job, hubstate.MovedAt) == "" && is.worker != last {
			took = append(took, is.at.Sub(sent[all[i]]))
		}
	}
	return measure.QuantilesOf(took), nil
}

// loseWorkers loses some at once, and gives them back when all their Jobs run elsewhere.
func (s *scale) loseWorkers(ctx context.Context, m *manager) error {
	o := s.options
	if o.Lost == 0 {
		return nil
	}
	jobs := s.jobsToMove()
	o.Progress("%d workers with %d Jobs are lost", o.Lost, len(jobs))
	writes := s.workerWrites()
	usage, err := m.Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	for _, c := range s.workers[:o.Lost] {
		c.Hang()
	}
	last, err := s.lastOf(ctx, jobs)
	if err != nil {
		return err
	}
	if err := s.awaitRest(ctx, m); err != nil {
		return err
	}
	after, err := m.Usage()
	if err != nil {
		return err
	}
	written, err := s.hubWrites(began)
	r := &s.result
	r.AddTime(fmt.Sprintf("%d workers lost at once: all %d Jobs run elsewhere, after %s of grace", o.Lost, len(jobs), o.LostAfter),
		last.Sub(began)-o.LostAfter, 90*time.Second)
	r.AddNone("workers that got more than they have room for", s.overfull())
	r.Add("writes to the hub for each of these Jobs, with events", float64(len(written))/float64(len(jobs)), report.Count, 8)
	r.Add("writes to workers for each of these Jobs", float64(s.workerWrites()-writes)/float64(len(jobs)), report.Count, 4)
	r.AddTime("CPU of the manager for that", after.CPU-usage.CPU, 0)
	return errors.Join(err, s.giveBack(ctx))
}

// jobsToMove are the live Jobs in the workers that are lost.
func (s *scale) jobsToMove() (jobs []string) {
	for n := range s.options.Jobs {
		if n%s.options.Workers < s.options.Lost {
			jobs = append(jobs, liveName(n))
		}
	}
	return jobs
}

// lastOf says when the last one of some Jobs was started.
func (s *scale) lastOf(ctx context.Context, jobs []string) (last time.Time, err error) {
	seen, err := s.seen.await(ctx, jobs...)
	for _, is := range seen {
		if is.at.After(last) {
			last = is.at
		}
	}
	return last, err
}

// overfull counts the workers, of those that aren't lost, with more Pods than they have room for.
func (s *scale) overfull() (n int) {
	for _, c := range s.workers[s.options.Lost:] {
		if c.Count("pods") > s.options.room()+simulatedNodes {
			n++
		}
	}
	return n
}

// giveBack has the lost workers answer again: their stale mirrors are removed.
func (s *scale) giveBack(ctx context.Context) error {
	began := time.Now()
	for _, c := range s.workers[:s.options.Lost] {
		c.Heal()
	}
	stale := 0
	err := until(ctx, func() bool {
		for ; stale < s.options.Jobs; stale++ {
			lost := stale%s.options.Workers < s.options.Lost
			if lost && s.placed(stale).Get("jobs", scaleNamespace, liveName(stale)) != nil {
				return false
			}
		}
		return true
	})
	s.result.AddTime("the lost workers are back: their stale mirrors are gone after", time.Since(began), 0)
	return err
}

// until looks again and again whether a condition holds.
func until(ctx context.Context, holds func() bool) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
