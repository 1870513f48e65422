package job

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// wide is a Job that takes a whole worker.
func wide(job *batchv1.Job) { *job.Spec.Parallelism, *job.Spec.Completions = 8, 8 }

// When capacity is freed, those of the Jobs that wait are enqueued that go, once.
func TestFreedCapacityEnqueuesJobs(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	runs(w)
	for _, name := range []string{"one", "two"} {
		w.submits(aJob(name, wide))
	}
	w.step(time.Minute)
	if got := reasons(w.events[1:]); !slices.Equal(got, []string{v1alpha1.EventPending, v1alpha1.EventPending}) {
		w.fail("events %v, want two Jobs to be pending", w.events)
	}
	w.worker("a").completes(3)
	w.run()
	if !w.clock.HasWaiters() {
		w.fail("the Jobs that wait aren't enqueued soon")
	}
	w.triggers.CapacityFreed("b", placement.Change{Kinds: placement.RoomChange}) // they are already
	w.clock.Step(10 * time.Millisecond)
	if len(w.queue.requests) > 0 {
		w.fail("enqueued %v at once", w.queue.requests)
	}
	w.clock.Step(40 * time.Microsecond) // 20 for each Job that waits
	if got := len(w.queue.requests); got != 1 {
		w.fail("%d Jobs are enqueued, want the one that has room", got)
	}
	w.run()
	if got := w.store.counted(); got[status{"a", jobview.Running}] != 1 || got[status{"", jobview.Pending}] != 1 {
		w.fail("counts %v, want one Job to run, and one to wait", got)
	}
}

// Before the queues are known, or the workers connected, Jobs wait to be placed.
func TestFirstPlacementsWait(t *testing.T) {
	w := newWorld(t)
	w.kueue.unsynced = true
	w.submits(aJob("train"))
	w.step(time.Minute)
	if w.writes > 0 {
		w.fail("the Job was placed before the queues were known")
	}
	w.kueue.unsynced, w.killed = false, true
	w.worker("a").view.State = clusters.Connecting
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	w.startedBy = stopped
	w.step(time.Minute)
	if w.writes > 0 {
		w.fail("the Job was placed before the workers were connected")
	}
	w.worker("a").view.State = clusters.Ready
	w.triggers.WorkerChanged("a")
	if err := w.startup.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.step(time.Second)
	if !w.running("a") {
		w.fail("the Job doesn't run:\n%s", w.state())
	}
}

// A reconcile that began before Jobs might be placed judges none: those behind it in line wait
// until it was judged.
func TestAReconcileThatBeganTooEarlyJudgesNothing(t *testing.T) {
	w := newWorld(t)
	w.worker("a").view.State = clusters.Connecting
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	w.startedBy = stopped
	w.start()
	w.submits(aJob("train"))
	w.deliver()
	w.worker("a").view.State = clusters.Ready
	w.kueue.asked = func() {
		w.kueue.asked = nil
		if err := w.startup.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.reconcile()
	if got := w.line.NotJudged(); !slices.Equal(got, []types.NamespacedName{jobKey}) {
		w.fail("not judged: %v", got)
	}
	w.step(time.Second)
	if got := w.line.NotJudged(); len(got) > 0 || !w.running("a") {
		w.fail("not judged: %v", got)
	}
}

// Before the workers are known, nothing is done.
func TestWorkersAreNotLoaded(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	w.deliver()
	w.Reconciler.workers = &fakeRegistry{world: w, loaded: make(chan struct{})}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := w.Reconcile(stopped, ctrl.Request{NamespacedName: jobKey}); err != nil || result != (ctrl.Result{}) || w.writes > 0 {
		w.fail("Reconcile returns %+v, %v", result, err)
	}
}

// A manager that is about to stop begins nothing.
func TestManagerStops(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	w.deliver()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := w.Reconcile(stopped, ctrl.Request{NamespacedName: jobKey}); err != nil || result != (ctrl.Result{}) || w.writes > 0 {
		w.fail("Reconcile returns %+v, %v", result, err)
	}
}

// Kueue is told where a Job will run, or why it can't, when that changes.
func TestQueuesHearOfPlacements(t *testing.T) {
	w := newWorld(t)
	isQueued(w)
	w.run()
	uid := w.hub.jobs[jobKey].UID
	if p, ok := w.triggers.PlacementResult(jobKey, uid); !ok || p.Worker != "a" || p.ReservedAt != noon {
		t.Errorf("the placement is %+v, %v", p, ok)
	}
	w.triggers.Enqueue(jobKey)
	w.run()
	if want := []string{"train"}; !slices.Equal(w.kueue.changed, want) {
		t.Errorf("changed: %v, want %v", w.kueue.changed, want)
	}
	w.admits(dispatch.Admission{Checked: true, QuotaReserved: true, ReservedAt: noon, Workers: []string{"c"}})
	w.run()
	if p, _ := w.triggers.PlacementResult(jobKey, uid); p.Worker != "" || !strings.Contains(p.Reason, "c") {
		t.Errorf("the placement is %+v", p)
	}
	if _, ok := w.triggers.PlacementResult(jobKey, "another"); ok {
		t.Error("there is a placement of no Job")
	}
}

// The metrics count the Jobs and their mirrors, until they are gone.
func TestJobsAreCounted(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.submits(aJob("later", suspended(true)))
	w.submits(aJob("never", annotated(v1alpha1.AnnotationClusterSelector, "zone=nowhere")))
	w.step(time.Second)
	w.worker("b").has(aJob("stopped", marked, suspended(true)))
	w.worker("b").idle = true
	w.worker("b").has(aJob("waiting", marked))
	w.deliver()
	want := map[string]float64{
		"jobs a Running": 1, "jobs  Suspended": 1, "jobs  Pending": 1,
		"mirrors a Running": 1, "mirrors b Suspended": 1, "mirrors b Placed": 1,
		"unschedulable_jobs SelectorMismatch": 1, "pending_jobs": 1,
	}
	if got := w.collected(); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	w.worker("a").completes(3)
	w.step(time.Second)
	for _, key := range w.hub.jobs.keys() {
		if err := w.hub.delete(key, client.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for key := range w.worker("b").api.jobs {
		delete(w.worker("b").api.jobs, key)
	}
	if w.deliver(); w.collected()["mirrors a Finished"] != 1 {
		t.Errorf("counts %v", w.collected())
	}
	w.step(time.Minute)
	if got := w.collected(); len(got) > 0 {
		t.Errorf("counts %v in the end", got)
	}
}

// marked makes a Job in a worker one of this origin.
func marked(job *batchv1.Job) {
	job.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-1"}
	job.Annotations = map[string]string{v1alpha1.AnnotationHubUID: "hub-9"}
}

// collected are the metrics without those of zero.
func (w *world) collected() map[string]float64 {
	w.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&jobsCollector{w.store, w.Reconciler.workers, w.line})
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "jobferry_")
			for _, label := range []string{"worker", "state", "phase", "reason"} {
				for _, l := range m.GetLabel() {
					if l.GetName() == label {
						name += " " + l.GetValue()
					}
				}
			}
			counts[name] = m.GetGauge().GetValue()
		}
	}
	return counts
}

// A worker can be removed when none of its Jobs is unfinished.
func TestUnfinished(t *testing.T) {
	w := newWorld(t)
	runs(w)
	if got := w.Unfinished("a"); got != 1 {
		t.Errorf("%d unfinished on a, want 1", got)
	}
	if got := w.Unfinished("nowhere"); got != 0 {
		t.Errorf("%d unfinished on no worker", got)
	}
}

// A standby sees the hub's Jobs, and enqueues them when it leads: its queue doesn't grow until
// then.
func TestAStandbySeesJobs(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.triggers.startup = newStartup(w.triggers.workers, w.triggers.enqueueAll, func() {}, func() {})
	w.queue, w.store.records, w.seen = fakeQueue{}, map[types.NamespacedName]*record{}, jobs{}
	w.deliver()
	if got := len(w.queue.requests); got > 0 {
		t.Errorf("a standby has %d requests in its queue", got)
	}
	if err := w.startup.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.queue.next().NamespacedName; got != jobKey {
		t.Errorf("enqueued %s when it leads", got)
	}
}

// Nothing is remembered of a worker that was removed.
func TestRemovedWorkerIsForgotten(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.worker("a").isGone()
	w.run()
	if m, ok := w.store.open(jobKey).read(w.clock.Now()).mirrors["a"]; ok {
		t.Errorf("of its mirrors is remembered %+v", m)
	}
	if got, want := slices.Compact(w.placementsChanged), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("the number of Jobs has changed on %v, want %v", got, want)
	}
}

// Jobs that somebody else runs are none of ours.
func TestOthersJobsAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train", func(job *batchv1.Job) { job.Spec.ManagedBy = nil }))
	w.deliver()
	if err := w.hub.delete(jobKey, client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if len(w.queue.requests) > 0 || len(w.store.records) > 0 {
		t.Errorf("enqueued %v, remembered %v", w.queue.requests, w.store.records)
	}
}

// A Job that was deferred has its turn before others.
func TestDeferredJobsComeFirst(t *testing.T) {
	w := newWorld(t)
	w.triggers.Enqueue(types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"})
	w.triggers.enqueueDeferred(types.NamespacedName{Name: "z"})
	if got := w.queue.next().Name; got != "z" {
		t.Errorf("%s comes first", got)
	}
}

// Thousands of Jobs are looked at after a start; what comes when Jobs may be placed doesn't wait
// for them.
func TestWhatComesAfterTheStartComesFirst(t *testing.T) {
	w := newWorld(t)
	q := queue.New("test", nil)
	t.Cleanup(q.ShutDown)
	w.triggers.queue, w.startup = q, newStartup(w.triggers.workers, func() {}, func() {}, func() {})
	w.triggers.Enqueue(types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"})
	close(w.startup.ended)
	w.triggers.Enqueue(types.NamespacedName{Name: "z"}, types.NamespacedName{Name: "b"})
	var got []string
	for range 3 {
		next, _ := q.Get()
		got = append(got, next.Name)
	}
	if !slices.Equal(got, []string{"z", "b", "a"}) && !slices.Equal(got, []string{"b", "z", "a"}) {
		t.Errorf("reconciled %q", got)
	}
}

// Of a mirror whose status waits to be written, neither more progress nor a Pod has the Job looked
// at before that is due. All else has.
func TestProgressWaitsForTheNextLook(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train", func(j *batchv1.Job) { *j.Spec.Completions = 9 }))
	w.step(time.Minute)
	w.worker("a").completes(1)
	w.run()
	w.worker("a").completes(1)
	w.run() // it waits for its turn
	w.worker("a").completes(1)
	w.deliver()
	w.triggers.PodsStuck("a", jobKey)
	if got := w.queue.requests; len(got) > 0 {
		w.fail("enqueued %v for progress", got)
	}
	w.worker("a").api.change(jobKey, func(j *batchv1.Job) { j.Labels["added"] = "there" })
	w.deliver()
	if got := w.queue.requests; len(got) != 1 {
		w.fail("enqueued %v for a label", got)
	}
	w.step(time.Hour)
	if got := w.hub.jobs[jobKey].Status.Succeeded; got != 3 {
		w.fail("the hub shows %d completions", got)
	}
	w.worker("a").completes(1)
	w.deliver()
	if got := w.queue.requests; len(got) != 1 {
		w.fail("enqueued %v for progress that nothing waits for", got)
	}
}
