package bench

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/bench/measure"
)

// boundAtOnce is how many writes of the loop are under way at a time.
const boundAtOnce = 32

// bound measures the lower bound: the writes that no dispatcher can do without, sent by a loop that
// decides nothing, watches nothing but Jobs, and writes no events.
func (r *run) bound(ctx context.Context) (err error) {
	jobs, stop, err := measure.Watch(ctx, r.fleet.hub.client, boundNamespace)
	if err != nil {
		return err
	}
	defer stop()
	l, err := startLoop(ctx, r.fleet)
	if err != nil {
		return err
	}
	defer l.stop()
	defer func() {
		if err != nil {
			err = errors.Join(context.Cause(l.ctx), err)
		}
	}()
	if r.round.Bound, _, err = r.burst(l.ctx, "bound", boundNamespace, r.fleet.hub, jobs, dispatched); err != nil {
		return err
	}
	if err := r.fleet.hub.remove(l.ctx, r.options.Submitters, boundNamespace, names(r.options.Jobs)); err != nil {
		return err
	}
	if err := jobs.AwaitGone(l.ctx); err != nil {
		return err
	}
	return l.tasks.Wait() // the mirrors are deleted, too: the next round has Jobs of their names
}

// loop is the least that a dispatcher does. Jobs go to the workers by turns.
type loop struct {
	fleet *fleet
	tasks *errgroup.Group
	ctx   context.Context // ends when a write fails
	stop  func()
	busy  chan struct{}

	mu   sync.Mutex
	jobs map[string]*boundJob
}

// boundJob is what the loop has seen of a Job.
type boundJob struct {
	hub      *batchv1.Job // as it was written last
	worker   *site
	status   *batchv1.JobStatus // the mirror's
	isGone   bool               // the hub Job is gone
	observed chan struct{}
}

func startLoop(ctx context.Context, f *fleet) (*loop, error) {
	l := &loop{fleet: f, busy: make(chan struct{}, boundAtOnce), jobs: map[string]*boundJob{}}
	ctx, cancel := context.WithCancel(ctx)
	l.tasks, l.ctx = errgroup.WithContext(ctx)
	var stops []func()
	l.stop = func() {
		cancel()
		for _, stop := range stops {
			stop()
		}
		_ = l.tasks.Wait() // what has failed is the context's cause
	}
	for _, s := range f.all() {
		handler := l.ofMirrors()
		if s == f.hub {
			handler = l.ofHub()
		}
		stop, err := measure.WatchJobs(l.ctx, s.client, boundNamespace, nil, handler)
		if err != nil {
			l.stop()
			return nil, err
		}
		stops = append(stops, stop)
	}
	return l, nil
}

func (l *loop) ofHub() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			hub := object.(*batchv1.Job)
			l.mu.Lock()
			j := &boundJob{hub: hub, worker: l.fleet.workers[len(l.jobs)%len(l.fleet.workers)], observed: make(chan struct{}, 1)}
			l.jobs[hub.Name] = j
			l.mu.Unlock()
			l.tasks.Go(func() error { return l.dispatch(j) })
		},
		DeleteFunc: func(object any) { // nothing keeps one that has ended
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				l.observe(key.Name, func(j *boundJob) { j.isGone = true })
			}
		},
	}
}

func (l *loop) ofMirrors() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			mirror := object.(*batchv1.Job)
			l.observe(mirror.Name, func(j *boundJob) { j.status = &mirror.Status })
		},
	}
}

func (l *loop) observe(name string, change func(*boundJob)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.jobs[name]
	change(j)
	select {
	case j.observed <- struct{}{}:
	default:
	}
}

// dispatch makes all writes for one Job, one after the other, when it's time for each.
func (l *loop) dispatch(j *boundJob) error {
	writes := boundWrites{
		ctx: l.ctx, job: j, mu: &l.mu, name: j.hub.Name,
		hub:    l.fleet.hub.client.BatchV1().Jobs(boundNamespace),
		worker: j.worker.client.BatchV1().Jobs(boundNamespace),
	}
	for _, step := range []struct {
		when func(*boundJob) bool
		do   func() error
	}{
		{nil, writes.place},
		{nil, writes.create},
		{reached(measure.Started), writes.status},
		{reached(measure.Complete), writes.status},
		{func(j *boundJob) bool { return j.isGone }, writes.remove},
	} {
		if err := l.await(j, step.when); err != nil {
			return err
		}
		l.busy <- struct{}{}
		err := step.do()
		<-l.busy
		if err != nil {
			return err
		}
	}
	return nil
}

func reached(stage measure.Stage) func(*boundJob) bool {
	return func(j *boundJob) bool { return j.status != nil && measure.StageOf(j.status) >= stage }
}

// await returns when a condition holds; nil always does.
func (l *loop) await(j *boundJob, when func(*boundJob) bool) error {
	is := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return when == nil || when(j) }
	for !is() {
		select {
		case <-j.observed:
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	return nil
}
