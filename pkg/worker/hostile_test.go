package worker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
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

// A large selector, which takes many times its bytes, isn't held. Its Job adopts Pods all the same.
func TestLargeSelectorsArentHeld(t *testing.T) {
	c := newCluster(t, Options{})
	job := aJob(func(j *batchv1.Job) {
		for i := range 2000 {
			j.Spec.Selector.MatchExpressions = append(j.Spec.Selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: fmt.Sprint("key-", i), Operator: metav1.LabelSelectorOpDoesNotExist})
		}
	})
	known := c.jobs.memory.of(job)
	if n := testing.AllocsPerRun(10, func() { known.selector.Matches(map[string]string{"job": "job-uid"}) }); n > 0 || known.selector.Matches(job.Spec.Selector.MatchLabels) {
		t.Error("the selector is held")
	}
	if !known.selectorOf(job).Matches(job.Spec.Selector.MatchLabels) {
		t.Error("a sync doesn't have it")
	}
}

// Very many Jobs with selectors of very many keys make an event of a Pod look at some of them.
func TestAnEventLooksAtFewLabels(t *testing.T) {
	c := newCluster(t, Options{})
	labels := map[string]string{}
	var expressions []metav1.LabelSelectorRequirement
	for i := range maxHeldSelector {
		key := fmt.Sprint("key-", i)
		labels[key] = "value"
		expressions = append(expressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
	}
	for i := range 2000 {
		c.jobs.memory.of(aJob(func(j *batchv1.Job) {
			j.Name, j.UID = fmt.Sprint(i), types.UID(fmt.Sprint(i))
			j.Spec.Selector = &metav1.LabelSelector{MatchExpressions: expressions}
		}))
	}
	pod := aPod("p", func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, labels })
	if n := len(c.jobs.memory.adopters(pod)); n == 0 || n > maxAdoptersLooks/len(labels) {
		t.Errorf("%d Jobs are offered the Pod", n)
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
	if known := len(f.tracker.Origins()); known > 11 || lists > 40 || closings > 1 {
		t.Errorf("%d origins known, Jobs listed %d times to find origins, and %d times to stop them", known, lists, closings)
	}
}

// The Jobs of origins of which there never was a Lease are counted together.
func TestMadeUpOriginsShareASeries(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	f := h.jobs.fence
	h.renew("hub", 15*time.Minute)
	f.countMarked("hub")
	for i := range 100 {
		f.countMarked(v1alpha1.Origin(fmt.Sprint("made-up-", i)))
	}
	if n := countSeries(f.metrics.marked); n != 2 {
		t.Errorf("%d series", n)
	}
	if n := value(t, f.metrics.marked.WithLabelValues("")); n != 100 {
		t.Errorf("%v Jobs of unknown origins counted", n)
	}
}

// countSeries is how many time series a metric has.
func countSeries(c prometheus.Collector) int {
	series := make(chan prometheus.Metric, 1000)
	c.Collect(series)
	return len(series)
}

// A tenant makes up controllers of his Jobs: the first ones have a series, the others share one.
func TestMadeUpControllersShareASeries(t *testing.T) {
	m := testMetrics(t)
	h := jobEvents(DefaultOptions(), m)
	for i := range 3 * maxControllers {
		job := aJob(func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(fmt.Sprint("example.com/", i)) })
		h.Create(t.Context(), event.CreateEvent{Object: job}, &delays{})
	}
	if n := countSeries(m.jobsByExternalControllers); n != maxControllers+1 {
		t.Errorf("%d series", n)
	}
	if n := value(t, m.jobsByExternalControllers.WithLabelValues("")); n != 2*maxControllers {
		t.Errorf("%v Jobs counted without a name", n)
	}
}

// A tenant makes Pods that have failed, and whose controller is another tenant's Job, by its UID.
func TestPodsOfAnotherNamespaceArentTheJobs(t *testing.T) {
	objects := []client.Object{aJob()}
	for i := range 10 {
		objects = append(objects, aPod(fmt.Sprint("forged-", i), func(p *corev1.Pod) { p.Namespace, p.Status.Phase = "evil", corev1.PodFailed }))
	}
	c := newCluster(t, Options{}, objects...)
	if c.mustSync(); c.job().Status.Failed > 0 || c.count("create") == 0 {
		t.Errorf("%d Pods created, status %+v", c.count("create"), c.job().Status)
	}
}

// countedPods counts what is read of an index.
type countedPods struct {
	indexedPods
	read int
}

func (c *countedPods) podsBy(value string) ([]*corev1.Pod, error) {
	pods, err := c.indexedPods.podsBy(value)
	c.read += len(pods)
	return pods, err
}

// A tenant has very many Pods without a controller: syncs of others' Jobs in his namespace don't
// look at them, and find those that they may adopt.
func TestPodsWithoutAControllerCostNoSync(t *testing.T) {
	c := newCluster(t, Options{})
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, podIndexers)
	pods := &countedPods{indexedPods: indexedPods{store}}
	c.jobs.cached = pods
	add := func(name string, labels map[string]string) {
		if err := store.Add(aPod(name, func(p *corev1.Pod) { p.OwnerReferences, p.Labels, p.ResourceVersion = nil, labels, "1" })); err != nil {
			t.Fatal(err)
		}
	}
	uid := map[string]string{batchv1.ControllerUidLabel: "job-uid"}
	add("orphan", uid)
	for i := range 1000 {
		add(fmt.Sprint(i), map[string]string{batchv1.ControllerUidLabel: fmt.Sprint(i), "job": "job-uid"})
	}
	for name, row := range map[string]struct {
		selects     map[string]string
		found, read int
	}{"by its UID": {uid, 1, 1}, "by another label": {map[string]string{"job": "job-uid"}, 1000, 1001}} {
		pods.read = 0
		job := aJob(func(j *batchv1.Job) { j.Spec.Selector.MatchLabels = row.selects })
		if found, err := c.jobs.podsOf(job, plan.SelectorOf(job), newMemory().of(job)); err != nil || len(found) != row.found || pods.read != row.read {
			t.Errorf("%s: %d Pods are found, and %d looked at: %v", name, len(found), pods.read, err)
		}
	}
	pods.read = 0
	job := aJob(func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: c.clock.Now()} })
	known := c.jobs.memory.of(job)
	if s, err := c.jobs.gather(t.Context(), job, known, c.clock.Now()); err != nil || len(s.Pods) > 0 || pods.read > 0 {
		t.Errorf("a Job that is being deleted has %d Pods, and looks at %d: %v", len(s.Pods), pods.read, err)
	}
	known.noteAdopted(aPod("0", func(p *corev1.Pod) { p.ResourceVersion = "2" }))
	if s, err := c.jobs.gather(t.Context(), job, known, c.clock.Now()); err != nil || len(s.Pods) != 1 {
		t.Errorf("it has %d of the Pods that it had adopted: %v", len(s.Pods), err)
	}
}

// Very many Pods without a controller match the selectors of very many Jobs: a Pod is offered to so
// few that their syncs look at a limited number of Pods together, and to none that adopts none.
func TestAnEventHasFewPodsLookedAt(t *testing.T) {
	c := newCluster(t, Options{})
	h := podEvents{memory: c.jobs.memory, options: c.jobs.options, metrics: testMetrics(t)}
	bare := func(i int) *corev1.Pod {
		return aPod(fmt.Sprint(i), func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, map[string]string{"job": "job-uid"} })
	}
	see := func(deleted *metav1.Time) {
		for i := range 2 * maxAdopters {
			c.jobs.memory.of(aJob(func(j *batchv1.Job) {
				j.Name, j.UID, j.DeletionTimestamp = fmt.Sprint(i), types.UID(fmt.Sprint(i)), deleted
			}))
		}
	}
	see(nil)
	for _, row := range []struct{ pods, offered int }{{1, maxAdopters}, {10_000, 5}, {50_000, 1}, {60_000, 1}} {
		for i := c.jobs.memory.bare["ns"]; i < row.pods; i++ {
			h.Create(t.Context(), event.CreateEvent{Object: bare(i)}, &delays{})
		}
		if n := len(c.jobs.memory.adopters(bare(0))); n != row.offered {
			t.Errorf("one of %d Pods is offered to %d Jobs", row.pods, n)
		}
	}
	for i := range 60_000 {
		if i%2 == 0 {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: bare(i), ObjectNew: aPod(fmt.Sprint(i), func(p *corev1.Pod) { p.ResourceVersion = "2" })}, &delays{})
		} else {
			h.Delete(t.Context(), event.DeleteEvent{Object: bare(i)}, &delays{})
		}
	}
	if len(c.jobs.memory.bare) > 0 {
		t.Errorf("counted when they're gone: %v", c.jobs.memory.bare)
	}
	see(&metav1.Time{Time: c.clock.Now()})
	if n := len(c.jobs.memory.adopters(bare(0))); n > 0 {
		t.Errorf("a Pod is offered to %d Jobs that are being deleted", n)
	}
}
