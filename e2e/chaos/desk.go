package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/e2e/chaos/watch"
)

// desk is where all that happens arrives, one after the other, for the checker.
type desk struct {
	progress func(string, ...any)
	jobs     int
	began    time.Time

	mu      sync.Mutex
	checker *checker.Checker
	told    int // violations
	faults  int
	started int

	clients map[string]kubernetes.Interface
	asking  sync.WaitGroup
	ctx     context.Context
}

func newDesk(stories []story.Story, o Options) *desk {
	options := checker.Options{LostAfter: o.LostAfter}
	for _, w := range fleet.WorkerNames() {
		options.Workers = append(options.Workers, checker.Worker{Name: w, Fenced: fleet.IsFenced(w)})
	}
	return &desk{
		progress: o.Progress, jobs: len(stories), began: time.Now(), checker: checker.New(options, stories),
		clients: map[string]kubernetes.Interface{},
	}
}

// open starts the watches of all clusters.
func (d *desk) open(ctx context.Context, f *fleet.Fleet, watches *sync.WaitGroup) error {
	d.began, d.ctx = time.Now(), ctx
	var err error
	if d.clients[f.Hub.Name()], err = watch.Client(f.Hub.RESTConfig()); err != nil {
		return err
	}
	for _, w := range f.Workers {
		if d.clients[w.Name()], err = watch.Client(w.RESTConfig()); err != nil {
			return err
		}
	}
	for name, client := range d.clients {
		watches.Go(func() { watch.Jobs(ctx, name, client, fleet.Namespace, d.observe) })
		watches.Go(func() { watch.Pods(ctx, name, client, fleet.Namespace, d.observe) })
	}
	watches.Go(func() {
		<-ctx.Done()
		d.asking.Wait()
	})
	return nil
}

// do has something done with the checker, and tells of new violations.
func (d *desk) do(what func(c *checker.Checker, at time.Duration)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what(d.checker, time.Since(d.began))
	for _, v := range d.checker.Violations()[d.told:] {
		d.told++
		d.progress("VIOLATION %s", v)
	}
}

func (d *desk) observe(e checker.Event) {
	d.do(func(c *checker.Checker, at time.Duration) {
		e.At = at
		for _, q := range c.Observe(e) {
			d.asking.Go(func() { d.ask(q) })
		}
	})
}

// answerTime is how long an API server may take to answer.
const answerTime = 3 * time.Second

// ask settles a question.
func (d *desk) ask(q checker.Question) {
	answer := checker.AllRun
	for _, p := range q.Pods {
		if answer = d.runs(p); answer != checker.AllRun {
			break
		}
	}
	d.do(func(c *checker.Checker, at time.Duration) { c.Answer(at, q, answer) })
}

func (d *desk) runs(p checker.PodRef) checker.Running {
	ctx, cancel := context.WithTimeout(d.ctx, answerTime)
	defer cancel()
	pod, err := d.clients[p.Where].CoreV1().Pods(fleet.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return checker.SomeEnded
	case err != nil:
		return checker.NoAnswer
	case pod.UID != p.UID || pod.Status.Phase != corev1.PodRunning:
		return checker.SomeEnded
	default:
		return checker.AllRun
	}
}

func (d *desk) pending() (names []string) {
	d.do(func(c *checker.Checker, _ time.Duration) { names = c.Pending() })
	return names
}

// acted is told before a user does something.
func (d *desk) acted(s *story.Story, deed story.Deed) {
	d.do(func(c *checker.Checker, at time.Duration) { c.Acted(at, s.Name, deed) })
}

// submitted is told when a Job was created.
func (d *desk) submitted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started++
}

// Begin implements inject.Log.
func (d *desk) Begin(f schedule.Fault) {
	d.do(func(c *checker.Checker, at time.Duration) {
		d.faults++
		c.Begin(at, f)
	})
	d.remark("%s", f)
}

// End implements inject.Log.
func (d *desk) End(f schedule.Fault) {
	d.do(func(c *checker.Checker, at time.Duration) { c.End(at, f) })
}

// Failed implements inject.Log.
func (d *desk) Failed(f schedule.Fault, err error) { d.remark("%s: %v", f, err) }

// remark tells what may help to understand.
func (d *desk) remark(format string, arguments ...any) {
	d.progress("%7.1fs %s", time.Since(d.began).Seconds(), fmt.Sprintf(format, arguments...))
}

// tellProgress says every now and then how it stands.
func (d *desk) tellProgress(ctx context.Context, progress func(string, ...any)) {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			pending := len(d.pending())
			d.mu.Lock()
			progress("%7.1fs %d of %d Jobs submitted, %d ended, %d faults, %d violations", time.Since(d.began).Seconds(),
				d.started, d.jobs, d.jobs-pending, d.faults, d.told)
			d.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}
