package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// shown is what a person sees of a status.
type shown struct {
	active, ready, succeeded, failed int32
	completed                        string
	conditions                       string // those that are True
}

func show(s *batchv1.JobStatus) shown {
	var conditions []string
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue && !hubstate.IsOurs(c.Type) {
			conditions = append(conditions, string(c.Type))
		}
	}
	slices.Sort(conditions)
	return shown{s.Active, ptr.Deref(s.Ready, 0), s.Succeeded, s.Failed, s.CompletedIndexes, strings.Join(conditions, ",")}
}

// differences between what two statuses show.
func differences(a, b *batchv1.JobStatus) string {
	if show(a) == show(b) {
		return ""
	}
	return fmt.Sprintf("%+v\n%+v", show(a), show(b))
}

// sighting is what a Job showed from some time on.
type sighting struct {
	shown
	at time.Time
}

// diary notes what a watch shows of a Job, until it has ended.
type diary struct {
	mu    sync.Mutex
	pages []sighting
}

func (d *diary) note(o runtime.Object) (ended bool) {
	job, ok := o.(*batchv1.Job)
	if !ok {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := show(&job.Status)
	if len(d.pages) == 0 || d.pages[len(d.pages)-1].shown != now {
		d.pages = append(d.pages, sighting{now, time.Now()})
	}
	return rigtest.Complete(job) || rigtest.Failed(job)
}

// keep watches a Job until it has ended.
func (d *diary) keep(ctx context.Context, c *rig.Cluster, namespace, name string) error {
	_, err := rig.Object(c.Client().BatchV1().RESTClient(), "jobs", namespace, name).Until(ctx, d.note)
	return err
}

// lags is how long after the worker each of its states, or a later one, was shown on the hub.
func lags(worker, hub []sighting) []time.Duration {
	var result []time.Duration
	for i, state := range worker {
		lag := time.Duration(-1) // never shown
		for _, page := range hub {
			reached := slices.IndexFunc(worker[i:], func(later sighting) bool { return later.shown == page.shown })
			if reached >= 0 {
				lag = max(0, page.at.Sub(state.at))
				break
			}
		}
		result = append(result, lag)
	}
	return result
}

// statusShowsAtOnce compares what two watches see, on the hub and in the worker. `make bench`
// measures how soon.
func statusShowsAtOnce(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Indexed(4), atMost(2), rigtest.RunFor(1500*time.Millisecond))
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	var inWorker, onHub diary
	var watches sync.WaitGroup
	for _, w := range []struct {
		diary   *diary
		cluster *rig.Cluster
	}{{&inWorker, f.Cluster(worker)}, {&onHub, f.Hub}} {
		watches.Go(func() {
			if err := w.diary.keep(f.Context(), w.cluster, f.NS, "job"); err != nil {
				t.Error(err)
			}
		})
	}
	watches.Wait()
	for i, lag := range lags(inWorker.pages, onHub.pages) {
		state := inWorker.pages[i]
		t.Logf("%+v: %s", state.shown, lag)
		if blank := (shown{}); state.shown == blank {
			continue // before the worker's controller had seen it
		}
		if lag < 0 || lag > atOnce {
			t.Errorf("%+v was shown on the hub after %s", state.shown, lag)
		}
	}
	last := onHub.pages[len(onHub.pages)-1]
	if last.completed != "0-3" || len(onHub.pages) < 4 {
		t.Errorf("the hub showed %+v", onHub.pages)
	}
}
