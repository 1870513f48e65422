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
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// recorder passes everything that happens to the checker, one event after the other.
type recorder struct {
	progress func(string, ...any)
	jobs     int
	began    time.Time

	mu       sync.Mutex
	checker  *checker.Checker
	reported int // violations
	faults   int
	started  int

	clients map[string]kubernetes.Interface
	// restored has what tells the watches of a cluster to begin anew.
	restored map[string][]chan struct{}
	asking   sync.WaitGroup
	ctx      context.Context
}

func newRecorder(stories []story.Story, o Options) *recorder {
	options := checker.Options{LostAfter: o.LostAfter, Shown: fleet.IsShown}
	for _, w := range fleet.WorkerNames() {
		options.Workers = append(options.Workers, checker.Worker{Name: w, Fenced: fleet.IsFenced(w)})
	}
	return &recorder{
		progress: o.Progress, jobs: len(stories), began: time.Now(), checker: checker.New(options, stories),
		clients: map[string]kubernetes.Interface{}, restored: map[string][]chan struct{}{},
	}
}

// open starts the watches of all clusters.
func (r *recorder) open(ctx context.Context, f *fleet.Fleet, watches *sync.WaitGroup) error {
	r.began, r.ctx = time.Now(), ctx
	var err error
	if r.clients[f.Hub.Name()], err = watch.Client(f.Hub.RESTConfig()); err != nil {
		return err
	}
	for _, w := range f.Workers {
		if r.clients[w.Name()], err = watch.Client(w.RESTConfig()); err != nil {
			return err
		}
	}
	for name, client := range r.clients {
		watches.Go(func() { watch.Jobs(ctx, name, client, metav1.NamespaceAll, r.observe, r.again(name)) })
		watches.Go(func() { watch.Pods(ctx, name, client, metav1.NamespaceAll, r.observe, r.again(name)) })
	}
	hub := f.Hub.Name()
	watches.Go(func() { watch.Events(ctx, hub, r.clients[hub], metav1.NamespaceAll, r.observe, r.again(hub)) })
	watches.Go(func() { r.listen(ctx) })
	watches.Go(func() {
		<-ctx.Done()
		r.asking.Wait()
	})
	return nil
}

// do calls a function with the checker, and prints new violations.
func (r *recorder) do(what func(c *checker.Checker, at time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(r.checker, time.Since(r.began))
	for _, v := range r.checker.Violations()[r.reported:] {
		r.reported++
		r.progress("VIOLATION %s", v)
	}
}

// again returns what tells a watch of a cluster to begin anew.
func (r *recorder) again(cluster string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan struct{}, 1)
	r.restored[cluster] = append(r.restored[cluster], c)
	return c
}

// listen has the checker look for Jobs of which nothing is heard.
func (r *recorder) listen(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.do(func(c *checker.Checker, at time.Duration) { c.Listen(at) })
		case <-ctx.Done():
			return
		}
	}
}

func (r *recorder) observe(e checker.Event) {
	r.do(func(c *checker.Checker, at time.Duration) {
		e.At = at
		for _, q := range c.Observe(e) {
			r.asking.Go(func() { r.ask(q) })
		}
	})
}

// answerTime is how long an API server may take to answer.
const answerTime = 3 * time.Second

// ask settles a question.
func (r *recorder) ask(q checker.Question) {
	answer := checker.AllRun
	for _, p := range q.Pods {
		if answer = r.runs(p); answer != checker.AllRun {
			break
		}
	}
	r.do(func(c *checker.Checker, at time.Duration) { c.Answer(at, q, answer) })
}

func (r *recorder) runs(p checker.PodRef) checker.Running {
	ctx, cancel := context.WithTimeout(r.ctx, answerTime)
	defer cancel()
	pod, err := r.clients[p.Where].CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
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

func (r *recorder) pending() (names []string) {
	r.do(func(c *checker.Checker, _ time.Duration) { names = c.Pending() })
	return names
}

// acted is called before a user does something.
func (r *recorder) acted(s *story.Story, deed story.Deed) {
	r.do(func(c *checker.Checker, at time.Duration) { c.Acted(at, s.Name, deed) })
}

// submitted is called when a Job was created.
func (r *recorder) submitted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
}

// Begin implements inject.Log.
func (r *recorder) Begin(f schedule.Fault) {
	r.do(func(c *checker.Checker, at time.Duration) {
		r.faults++
		c.Begin(at, f)
	})
	r.remark("%s", f)
}

// End implements inject.Log.
func (r *recorder) End(f schedule.Fault) {
	r.do(func(c *checker.Checker, at time.Duration) {
		c.End(at, f)
		if f.Kind == schedule.RestoreWorker || f.Kind == schedule.RestoreHub {
			for _, again := range r.restored[f.Target] {
				wake.Signal(again)
			}
		}
	})
}

// ended is called when a process has ended by itself.
func (r *recorder) ended(cluster, process string) {
	r.remark("%s of %s ended by itself", process, cluster)
	if cluster == "hub" { // it's a manager
		r.do(func(c *checker.Checker, at time.Duration) { c.Ended(at, process) })
	}
}

// Failed implements inject.Log.
func (r *recorder) Failed(f schedule.Fault, err error) { r.remark("%s: %v", f, err) }

// remark prints what may help to understand.
func (r *recorder) remark(format string, arguments ...any) {
	r.progress("%7.1fs %s", time.Since(r.began).Seconds(), fmt.Sprintf(format, arguments...))
}

// reportProgress reports the state of the run every 15 s.
func (r *recorder) reportProgress(ctx context.Context, progress func(string, ...any)) {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			pending := len(r.pending())
			r.mu.Lock()
			progress("%7.1fs %d of %d Jobs submitted, %d ended, %d faults, %d violations", time.Since(r.began).Seconds(),
				r.started, r.jobs, r.jobs-pending, r.faults, r.reported)
			r.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}
