package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// delays is a queue that notes what is added to it.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []time.Duration
}

func (d *delays) AddAfter(_ reconcile.Request, after time.Duration) { d.added = append(d.added, after) }

func testMetrics(t *testing.T) *metrics {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry(), "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An edit by a user is enqueued at once, the rest in batches.
func TestJobEventsAreBatched(t *testing.T) {
	o := DefaultOptions()
	others := aJob(func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") })
	edited := aJob(func(j *batchv1.Job) { j.Generation = 2 })
	h := jobEvents(o, testMetrics(t))
	for name, row := range map[string]struct {
		send func(*delays)
		want []time.Duration
	}{
		"created":            {func(q *delays) { h.Create(t.Context(), event.CreateEvent{Object: aJob()}, q) }, []time.Duration{0}},
		"created for others": {func(q *delays) { h.Create(t.Context(), event.CreateEvent{Object: others}, q) }, nil},
		"edited": {func(q *delays) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: aJob(), ObjectNew: edited}, q)
		}, []time.Duration{0}},
		"given other indexes": {func(q *delays) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: aShard("3", ""), ObjectNew: aShard("4", "")}, q)
		}, []time.Duration{0}},
		"observed written": {func(q *delays) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: aShard("3", ""), ObjectNew: aShard("3", "3")}, q)
		}, []time.Duration{time.Second}},
		"status written": {func(q *delays) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: aJob(), ObjectNew: aJob()}, q)
		}, []time.Duration{time.Second}},
		"deleted": {func(q *delays) { h.Delete(t.Context(), event.DeleteEvent{Object: aJob()}, q) }, []time.Duration{0}},
	} {
		q := &delays{}
		if row.send(q); !slices.Equal(q.added, row.want) {
			t.Errorf("%s: queued after %v, want %v", name, q.added, row.want)
		}
	}
}

func TestPodEventsWakeTheirJobs(t *testing.T) {
	o := DefaultOptions()
	c := newCluster(t, o, aJob())
	c.jobs.memory.of(aJob())
	h := podEvents{memory: c.jobs.memory, options: o, metrics: testMetrics(t)}
	version := func(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }
	orphan := func(p *corev1.Pod) { p.OwnerReferences = nil }
	stranger := func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, map[string]string{"app": "web"} }
	of := func(kind string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind } }
	update := func(before, after *corev1.Pod) func(*delays) {
		return func(q *delays) { h.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q) }
	}
	create := func(p client.Object) func(*delays) {
		return func(q *delays) { h.Create(t.Context(), event.CreateEvent{Object: p}, q) }
	}
	others := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: "2"}}
	for name, row := range map[string]struct {
		send func(*delays)
		want int
	}{
		"a Pod of something else, as the cache has it": {create(others), 0},
		"such a Pod that goes away":                    {func(q *delays) { h.Delete(t.Context(), event.DeleteEvent{Object: others}, q) }, 0},
		"such a Pod that changes": {func(q *delays) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: &metav1.PartialObjectMetadata{}, ObjectNew: others}, q)
		}, 0},
		"given to something else": {func(q *delays) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: aPod("p", version("1")), ObjectNew: others}, q)
		}, 1},
		"a Pod of a Job":                    {create(aPod("p")), 1},
		"a Pod of something else":           {create(aPod("p", of("ReplicaSet"))), 0},
		"an orphan that matches":            {create(aPod("p", orphan)), 1},
		"an orphan that doesn't":            {create(aPod("p", stranger)), 0},
		"a resync":                          {update(aPod("p", version("1")), aPod("p", version("1"))), 0},
		"a change":                          {update(aPod("p", version("1")), aPod("p", version("2"))), 2},
		"taken from its Job":                {update(aPod("p", version("1")), aPod("p", version("2"), orphan)), 2},
		"an orphan's status":                {update(aPod("p", version("1"), orphan), aPod("p", version("2"), orphan)), 0},
		"an orphan that begins to match":    {update(aPod("p", version("1"), stranger), aPod("p", version("2"), orphan)), 1},
		"a Pod of a Job that has gone away": {func(q *delays) { h.Delete(t.Context(), event.DeleteEvent{Object: aPod("p")}, q) }, 1},
	} {
		q := &delays{}
		if row.send(q); len(q.added) != row.want {
			t.Errorf("%s: queued %v, want %d times", name, q.added, row.want)
		}
		for _, after := range q.added {
			if after != time.Second {
				t.Errorf("%s: queued after %v, want the batch period", name, after)
			}
		}
	}
}
