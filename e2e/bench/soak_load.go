package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// load is what users do in a soak.
type load struct {
	hub       *site
	namespace string
	ttl       time.Duration
	rate      float64

	mu sync.Mutex
	// jobs are those that have to end, which is all that aren't deleted.
	jobs  []string
	count int
}

const (
	// Of so many Jobs, one is created suspended and resumed, one gets more parallelism, one is
	// deleted.
	soakKinds = 20
	// deleted is which of them that is.
	deleted = 2
	// soakThink is when users act on a Job.
	soakThink = time.Second
)

// submit submits Jobs until the context ends.
func (l *load) submit(ctx context.Context) error {
	if err := l.schedule(ctx); err != nil {
		return err
	}
	var users sync.WaitGroup
	defer users.Wait()
	failed := make(chan error, 1)
	ticks := time.NewTicker(time.Duration(float64(time.Second) / l.rate))
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticks.C:
			users.Go(func() {
				// A Job that was begun is played to its end.
				if err := l.play(context.WithoutCancel(ctx), n); err != nil {
					select {
					case failed <- err:
					default: // the first says enough
					}
				}
			})
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// saturate submits Jobs for some time, so that always so many are under way, and returns how many
// were submitted in a second. The first third, in which the machine gets warm, doesn't count.
func (l *load) saturate(ctx context.Context, seen *measure.Timeline, atATime int, during time.Duration) (rate float64, err error) {
	limited, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var next atomic.Int64
	tasks, underway := errgroup.WithContext(limited)
	for range atATime {
		tasks.Go(func() error {
			for underway.Err() == nil {
				n := int(next.Add(1) - 1)
				if err := l.play(context.WithoutCancel(ctx), n); err != nil {
					return err
				}
				if n%soakKinds == deleted {
					continue
				}
				if err := seen.AwaitJob(underway, nameOf(n), measure.Complete); err != nil {
					return nil // the time is up, or another one has failed
				}
			}
			return nil
		})
	}
	if err := pause(underway, during/3); err != nil {
		return 0, tasks.Wait()
	}
	before, began := l.submitted(), time.Now()
	<-underway.Done()
	submitted, took := l.submitted()-before, time.Since(began)
	return float64(submitted) / took.Seconds(), tasks.Wait()
}

func nameOf(n int) string { return fmt.Sprintf("job-%06d", n) }

// play submits one Job, and does to it what users do.
func (l *load) play(ctx context.Context, n int) error {
	name := nameOf(n)
	kind := n % soakKinds
	options := []option{dispatched, l.expires}
	switch kind {
	case 0:
		options = append(options, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	case 1:
		options = append(options, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](4) })
	}
	if _, err := l.hub.create(ctx, 1, l.namespace, []string{name}, options...); err != nil {
		return err
	}
	l.mu.Lock()
	l.count++
	if kind != deleted {
		l.jobs = append(l.jobs, name)
	}
	l.mu.Unlock()
	if kind > deleted {
		return nil
	}
	if err := pause(ctx, soakThink); err != nil {
		return err
	}
	switch kind {
	case 0:
		return l.patch(ctx, name, `{"spec":{"suspend":false}}`)
	case 1:
		return l.patch(ctx, name, `{"spec":{"parallelism":4}}`)
	default:
		return l.hub.remove(ctx, 1, l.namespace, []string{name})
	}
}

// expires has a Job removed some time after its end.
func (l *load) expires(j *batchv1.Job) {
	j.Spec.TTLSecondsAfterFinished = ptr.To(int32(l.ttl.Seconds()))
}

func (l *load) patch(ctx context.Context, job, patch string) error {
	_, err := l.hub.client.BatchV1().Jobs(l.namespace).Patch(ctx, job, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it has ended, and expired
	}
	return err
}

// schedule makes a CronJob, which makes a Job each minute.
func (l *load) schedule(ctx context.Context) error {
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "minutely"},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", SuccessfulJobsHistoryLimit: ptr.To[int32](0),
			JobTemplate: batchv1.JobTemplateSpec{Spec: newJob(l.namespace, "minutely", dispatched).Spec},
		},
	}
	_, err := l.hub.client.BatchV1().CronJobs(l.namespace).Create(ctx, cron, metav1.CreateOptions{})
	return err
}

func (l *load) submitted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// awaitEnds waits until all Jobs have ended, and says how many haven't. No further CronJob is made.
func (l *load) awaitEnds(ctx context.Context, seen *measure.Timeline) (unfinished int, err error) {
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if err := l.hub.client.BatchV1().CronJobs(l.namespace).Delete(ctx, "minutely", background); err != nil {
		return 0, err
	}
	for _, name := range l.jobs {
		if err := seen.AwaitJob(ctx, name, measure.Complete); errors.Is(err, context.DeadlineExceeded) {
			unfinished++
		} else if err != nil {
			return 0, err
		}
	}
	return unfinished, nil
}

// withoutEvents counts the Jobs that have ended without an event of the manager's.
func (l *load) withoutEvents(ctx context.Context) (silent int, err error) {
	told := map[string]bool{}
	page := metav1.ListOptions{Limit: 1000}
	for first := true; first || page.Continue != ""; first = false {
		events, err := l.hub.client.EventsV1().Events(l.namespace).List(ctx, page)
		if err != nil {
			return 0, err
		}
		for _, e := range events.Items {
			if e.ReportingController == v1alpha1.EventController {
				told[e.Regarding.Name] = true
			}
		}
		page.Continue = events.Continue
	}
	for _, name := range l.jobs {
		if !told[name] {
			silent++
		}
	}
	return silent, nil
}
