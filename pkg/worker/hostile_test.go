package worker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A tenant has many Jobs with selectors of as many values as fit into them: neither a Pod of his
// without a controller nor a sync costs by their number.
func TestSelectorsOfATenantAreReadOnce(t *testing.T) {
	c := newCluster(t, Options{})
	values := make([]string, 20_000)
	for i := range values {
		values[i] = fmt.Sprintf("%x", i)
	}
	for i := range 20 {
		c.jobs.memory.of(aJob(func(j *batchv1.Job) {
			j.Name, j.UID = fmt.Sprint(i), types.UID(fmt.Sprint(i))
			j.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "key", Operator: metav1.LabelSelectorOpNotIn, Values: values}}
		}))
	}
	h, q := podEvents{memory: c.jobs.memory, options: c.jobs.options, metrics: testMetrics(t)}, &delays{}
	bare := aPod("p", func(p *corev1.Pod) {
		p.OwnerReferences, p.Labels = nil, map[string]string{"job": "job-uid", "key": "1"}
	})
	if n := testing.AllocsPerRun(10, func() { h.Create(t.Context(), event.CreateEvent{Object: bare}, q) }); n > 20 {
		t.Errorf("%v allocations for an event of a Pod", n)
	}
	if len(q.added) > 0 {
		t.Errorf("queued %v", q.added)
	}
}

// A tenant makes up very many origins: few become known, all Jobs are listed seldom, and the fence
// of a hub closes in time.
func TestMadeUpOriginsDelayNoFence(t *testing.T) {
	c := newCluster(t, Options{})
	h := withHubs(c, 5*time.Minute)
	f := h.jobs.fence
	origins, lists, closings := sets.New[v1alpha1.Origin]("hub"), 0, 0
	f.origins = func(context.Context) (sets.Set[v1alpha1.Origin], error) {
		lists++
		return origins, nil
	}
	enqueue := f.enqueueJobs
	f.enqueueJobs = func(ctx context.Context, closed sets.Set[v1alpha1.Origin]) {
		closings++
		enqueue(ctx, closed)
	}
	h.renew("hub", 15*time.Minute)
	for i := range 1000 {
		job := aJob(of(fmt.Sprint("made-up-", i)))
		origins.Insert(originOf(job))
		f.stops(job)
		f.sync(t.Context())
	}
	h.silence(6 * time.Minute)
	if !slices.Contains(h.enqueued, "hub") {
		t.Errorf("enqueued %v", h.enqueued)
	}
	if known := len(f.tracker.Origins()); known > 101 || lists > 40 || closings > 1 {
		t.Errorf("%d origins known, Jobs listed %d times to find origins, and %d times to stop them", known, lists, closings)
	}
}
