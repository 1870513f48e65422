package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

const scaleNamespace = "bench-scale"

// errTimeOver is why a run ends that has taken as long as it may.
var errTimeOver = errors.New("the time of the run is over")

// scale is one run of the benchmark of many workers.
type scale struct {
	options ScaleOptions
	product installed
	hub     *site
	server  *clustertest.Server
	workers []*clustertest.Cluster
	tasks   sync.WaitGroup
	seen    *sightings
	live    *pattern
	done    *pattern
	// jobs is how many of the live Jobs there are, ended how many of the finished ones, and probes how
	// many were submitted to see whether the manager is in control.
	jobs, ended, probes int
	// profiles are where each of the two managers serves its own.
	profiles [2]string
	// handovers are how long each took.
	handovers []time.Duration
	result    report.Scale
}

// RunScale measures a manager with a real hub and many simulated workers.
func RunScale(ctx context.Context, o ScaleOptions) (*report.Scale, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.TimeLimit, errTimeOver)
	defer cancel()
	s := &scale{options: o, seen: newSightings(), result: report.Scale{
		Workers: o.Workers, Jobs: o.Jobs, Finished: o.Finished, Machine: measure.Machine(), MemoryLimit: o.MemoryLimit,
		Measured: report.Measured{Told: func(figure string) { o.Progress("%s", figure) }},
	}}
	o.Progress("starting a hub, and %d simulated workers with room for %d Pods each", o.Workers, o.room())
	err := onGround(ctx, o.Manager, rig.Options{Name: "hub", Audit: true}, nil, []string{scaleNamespace}, func(g ground) error {
		s.hub, s.product = g.fleet.hub, g.product
		s.server = clustertest.NewServer(func() {})
		defer s.server.Close()
		running, stop := context.WithCancel(ctx)
		defer s.tasks.Wait()
		defer stop()
		if err := s.prepare(running); err != nil {
			return err
		}
		return s.measure(ctx)
	})
	return &s.result, err
}

// prepare registers the workers, and has the Jobs dispatched from which others are copied.
func (s *scale) prepare(ctx context.Context) (err error) {
	for i := range s.profiles {
		if s.profiles[i], err = (&fleet{hub: s.hub}).reserveProfiles(); err != nil {
			return err
		}
	}
	for n := range s.options.Workers {
		if err := s.addWorker(ctx, n); err != nil {
			return err
		}
	}
	m, err := s.start(0)
	if err != nil {
		return err
	}
	return m.whileRuns(ctx, s.dispatchPatterns)
}

// dispatchPatterns returns when the manager has dispatched both patterns, and all workers are
// Ready.
func (s *scale) dispatchPatterns(ctx context.Context) (err error) {
	if s.live, err = s.dispatchPattern(ctx, "pattern-live", func(j *batchv1.Job) bool {
		return measure.StageOf(&j.Status) == measure.Ready
	}); err != nil {
		return err
	}
	s.done, err = s.dispatchPattern(ctx, "pattern-done", func(j *batchv1.Job) bool {
		return measure.StageOf(&j.Status) == measure.Complete
	}, func(j *batchv1.Job) { j.Labels[labelEnds] = "yes" })
	if err != nil {
		return err
	}
	return s.awaitRegistered(ctx)
}

// awaitRegistered returns when all workers are Ready: a Job on a worker that
// isn't registered would be moved.
func (s *scale) awaitRegistered(ctx context.Context) error {
	if err := until(ctx, func() bool {
		return !slices.ContainsFunc(s.workers, func(c *clustertest.Cluster) bool { return c.Requests("watch pods") == 0 })
	}); err != nil {
		return err
	}
	_, err := s.hub.Kubectl(ctx, "", "wait", "--for=condition=Ready", "workerclusters", "--all", "--timeout=120s")
	return err
}

// start starts the first manager or the second.
func (s *scale) start(number int) (*manager, error) {
	flags := append([]string{"--worker-lost-timeout=" + s.options.LostAfter.String()}, s.options.ManagerFlags...)
	var environment []string
	if s.options.MemoryLimit != "" {
		environment = append(environment, "GOMEMLIMIT="+s.options.MemoryLimit)
	}
	return startManager(s.product, s.profiles[number], flags, environment...)
}

// fill adds copies of the patterns, on the hub and in the workers, while no manager runs.
func (s *scale) fill(ctx context.Context, live, finished int) error {
	s.options.Progress("%d live and %d finished Jobs are copied", live, finished)
	var jobs []*batchv1.Job
	add := func(p *pattern, prefix string, n int) {
		worker := s.placed(n)
		c := p.copyOf(prefix, n, worker.Name(), nodeName(n/len(s.workers)%simulatedNodes))
		jobs = append(jobs, c.hub)
		worker.Put("jobs", c.mirror)
		if c.pod != nil {
			worker.Put("pods", c.pod)
		}
	}
	for ; s.jobs < live; s.jobs++ {
		add(s.live, livePrefix, s.jobs)
	}
	for ; s.ended < finished; s.ended++ {
		add(s.done, "done", s.ended)
	}
	return storeJobs(ctx, s.hub.EtcdURL(), jobs)
}

// measure goes from few Jobs to many, and then breaks what can break. When the time is over, what
// was measured until then is the result.
func (s *scale) measure(ctx context.Context) error {
	err := s.starts(ctx)
	if err == nil {
		err = s.faults(ctx)
	}
	if errors.Is(context.Cause(ctx), errTimeOver) {
		s.options.Progress("the time is over (-time-limit), so figures are missing: %v", err)
		s.result.Unfinished = true
		return nil
	}
	return err
}

// starts measures managers that start with few Jobs, with many, with finished ones besides, and
// again.
func (s *scale) starts(ctx context.Context) error {
	o, r := s.options, &s.result
	few, err := s.resident(ctx, o.Few, 0)
	if err != nil {
		return err
	}
	many, err := s.resident(ctx, o.Jobs, 0)
	if err != nil {
		return err
	}
	if o.Jobs > o.Few {
		r.Add("heap for each live Job, with its Pod", float64(many.heap-few.heap)/float64(o.Jobs-o.Few), report.Kilobyte, 6e3)
	}
	r.Add("heap with all live Jobs", float64(many.heap), report.Megabyte, 0)
	r.Add("resident memory with all live Jobs, peak", float64(many.peak), report.Megabyte, 500e6)
	r.Add("goroutines for each worker", float64(many.goroutines)/float64(o.Workers), report.Count, 0)
	if o.Finished > 0 {
		all, err := s.resident(ctx, o.Jobs, o.Finished)
		if err != nil {
			return err
		}
		r.Add("heap for each finished Job", float64(all.heap-many.heap)/float64(o.Finished), report.Kilobyte, 1e3)
		r.Add("resident memory with these, peak", float64(all.peak), report.Megabyte, 0)
	}
	again, err := s.resident(ctx, o.Jobs, o.Finished) // nothing has changed
	if err != nil {
		return err
	}
	r.AddTime("a leader's start until it's in control", again.control, 30*time.Second)
	r.AddNone("needless writes to the hub at its start", again.hubWrites)
	r.AddNone("needless writes to workers at its start", again.workerWrites)
	r.AddTime("CPU of its start", again.cpu, 0)
	return nil
}
