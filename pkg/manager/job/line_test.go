package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
)

// pods has a Job run so many Pods, each on a CPU, and deadline gives it so long.
func pods(n int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { *job.Spec.Parallelism, *job.Spec.Completions = n, n }
}

func deadline(d time.Duration) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = ptr.To(int64(d.Seconds())) }
}

func ofClass(name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Template.Spec.PriorityClassName = name }
}

// queues submits Jobs, one each second.
func (w *world) queues(jobs ...*batchv1.Job) {
	w.Helper()
	for _, job := range jobs {
		w.submits(job)
		w.step(time.Second)
	}
}

func inTeam(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: jobKey.Namespace, Name: name}
}

// ends has Jobs complete in their workers.
func (w *world) ends(names ...string) {
	w.Helper()
	for _, name := range names {
		at := w.placedOn(name)
		w.logf(at, "%s completes", name)
		w.worker(at).api.change(inTeam(name), func(job *batchv1.Job) { job.Status.Succeeded = *job.Spec.Completions })
	}
	w.step(time.Second)
}

// placedOn is where a Job is.
func (w *world) placedOn(name string) string {
	workers := shards.WorkersOf(w.hub.jobs[inTeam(name)])
	if len(workers) == 0 {
		return ""
	}
	return workers[0]
}

func (w *world) wantPlaced(want map[string]string) {
	w.Helper()
	for name, worker := range want {
		if got := w.placedOn(name); got != worker {
			w.fail("%s is on %q, want %q", name, got, worker)
		}
	}
}

// newFullWorld has one worker, on whose 8 CPUs run the Jobs small-1 to small-8.
func newFullWorld(t *testing.T) *world {
	w := newWorld(t)
	w.worker("b").drains(true)
	for i := range 8 {
		w.queues(aJob(fmt.Sprintf("small-%d", i+1), pods(1), deadline(time.Hour)))
	}
	return w
}

// A wide Job isn't passed by a stream of small ones that would run for longer than it has to wait.
func TestWideJobIsNotPassed(t *testing.T) {
	w := newFullWorld(t)
	w.queues(aJob("wide", pods(8)), aJob("later", pods(1)), aJob("brief", pods(1), deadline(time.Minute)))
	for i := range 8 {
		w.ends(fmt.Sprintf("small-%d", i+1))
		if i < 7 {
			w.wantPlaced(map[string]string{"wide": "", "later": "", "brief": "a"})
			w.queues(aJob(fmt.Sprintf("stream-%d", i), pods(1)))
		}
	}
	w.wantPlaced(map[string]string{"wide": ""}) // for brief still runs
	w.ends("brief")
	w.wantPlaced(map[string]string{"wide": "a", "later": "", "stream-0": ""})
	w.ends("wide")
	w.wantPlaced(map[string]string{"later": "a", "stream-0": "a"})
}

// A Job without a deadline is expected to run for as long as others of its namespace did in its
// worker, also after a restart, whatever other workers say.
func TestRuntimesAreLearned(t *testing.T) {
	w := newWorld(t)
	w.worker("b").early = 1000 * time.Hour
	w.worker("a").drains(true)
	names := []string{}
	for i := range 8 {
		names = append(names, fmt.Sprintf("liar-%d", i))
		w.submits(aJob(names[i], pods(1)))
	}
	w.step(10 * time.Hour) // a lie is as long as the Job is old
	w.ends(names...)
	if ran := w.hub.jobs[inTeam("liar-7")].Status; ran.CompletionTime.Sub(ran.StartTime.Time) < 10*time.Hour {
		w.fail("b doesn't lie: %+v", ran)
	}
	w.worker("a").drains(false)
	w.worker("b").drains(true)
	names = nil
	for i := range 8 {
		names = append(names, fmt.Sprintf("past-%d", i))
		w.submits(aJob(names[i], pods(1)))
	}
	w.step(10 * time.Minute)
	w.ends(names...)
	for i := range 8 {
		w.queues(aJob(fmt.Sprintf("small-%d", i), pods(1)))
	}
	w.queues(aJob("wide", pods(8)), aJob("later", pods(1)))
	for _, when := range []string{"at first", "after a restart"} {
		last := w.hub.jobs[inTeam("small-7")].Status.StartTime
		wide, err := w.Explain(w.Context(), inTeam("wide"))
		if err != nil || wide.Waiting == nil || wide.Waiting.ExpectedStart == nil || wide.Waiting.Latest ||
			wide.Waiting.ExpectedStart.Sub(last.Time).Round(time.Minute) != 10*time.Minute {
			w.fail("%s: %+v, %v; small-7 started at %s", when, wide, err, last)
		}
		w.killed, w.cacheSyncs = true, true
		w.step(time.Minute)
	}
}

// Jobs go by priority, then by age.
func TestPriorityGoesFirst(t *testing.T) {
	w := newFullWorld(t)
	w.classes = priorityClasses{
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100},
		{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 10, GlobalDefault: true},
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1},
	}
	w.queues(aJob("low", pods(1), ofClass("low")), aJob("unknown", pods(1), ofClass("none")), aJob("first", pods(1)),
		aJob("second", pods(1)), aJob("high", pods(1), ofClass("high")))
	for i, next := range []string{"high", "first", "second", "low", "unknown"} {
		w.wantPlaced(map[string]string{next: ""})
		w.ends(fmt.Sprintf("small-%d", i+1))
		w.wantPlaced(map[string]string{next: "a"})
	}
}

// After a start no Job goes before all that wait were judged.
func TestOrderSurvivesARestart(t *testing.T) {
	w := newFullWorld(t)
	w.classes = priorityClasses{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}}
	w.queues(aJob("a-late", pods(1)), aJob("b-wide", pods(8), ofClass("high")), aJob("c-high", pods(1), ofClass("high")))
	w.killed = true
	for i := range 8 { // while there is no manager, all that ran is gone
		key := inTeam(fmt.Sprintf("small-%d", i+1))
		delete(w.hub.jobs, key)
		delete(w.worker("a").api.jobs, key)
	}
	w.cacheSyncs = true
	w.step(time.Minute)
	w.wantPlaced(map[string]string{"a-late": "", "b-wide": "a", "c-high": ""})
}

// What Kueue starts heeds no reservation and has none.
func TestKueueDecides(t *testing.T) {
	w := newFullWorld(t)
	w.queues(aJob("wide", pods(8)))
	w.kueue.admissions["queued"] = dispatch.Admission{Queued: true}
	w.queues(aJob("queued", pods(1)), aJob("later", pods(1)))
	w.ends("small-1")
	w.wantPlaced(map[string]string{"wide": "", "queued": "a", "later": ""})
}

// A Job in several workers takes nothing of what is reserved.
func TestDividedJobHeedsReservations(t *testing.T) {
	w := newFullWorld(t)
	w.parallelism = 4
	w.queues(aJob("wide", pods(8)), aJob("divided", pods(4), func(job *batchv1.Job) {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}, annotated(v1alpha1.AnnotationMaxClusters, "All")))
	w.ends("small-1", "small-2")
	w.wantPlaced(map[string]string{"wide": "", "divided": ""})
	if err := w.hub.delete(inTeam("wide"), client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.step(time.Second)
	w.wantPlaced(map[string]string{"divided": "a"})
}

// It may take what the Job with the reservation leaves.
func TestDividedJobTakesWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.parallelism = 4
	for _, name := range []string{"four", "other"} { // both have until the same time
		w.submits(aJob(name, pods(4), deadline(time.Hour)))
	}
	w.step(time.Second)
	w.queues(aJob("wide", pods(7)), aJob("train", pods(4), func(job *batchv1.Job) {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}, annotated(v1alpha1.AnnotationMaxClusters, "All")))
	w.ends("four")
	w.wantPlaced(map[string]string{"wide": "", "train": "a"})
	if placement, err := shards.Read(w.hub.jobs[jobKey]); err != nil || placement.Parallelism() != 1 {
		w.fail("%+v, %v, want one Pod at once", placement, err)
	}
}

// Jobs that a change can't help aren't looked at, and at rest nobody is.
func TestOnlyWhoMayGoIsLookedAt(t *testing.T) {
	w := newFullWorld(t)
	w.queues(aJob("wide", pods(8)), aJob("other", pods(7)), aJob("third", pods(6)))
	w.step(time.Hour)
	w.queue.requests = nil
	w.worker("a").api.change(inTeam("small-1"), func(job *batchv1.Job) { job.Status.Succeeded = 1 })
	w.run()
	w.clock.Step(time.Second)
	if slices.ContainsFunc(w.queue.requests, func(r ctrl.Request) bool { return r.Name != "small-1" }) {
		w.fail("%v are enqueued", w.queue.requests)
	}
	w.run()
	if w.clock.Step(time.Hour); w.clock.HasWaiters() || len(w.queue.requests) > 0 {
		w.fail("%v are enqueued at rest", w.queue.requests)
	}
}

// An explanation says where a Job is in the line, when it's expected to go, and what is kept from
// it.
func TestExplainSaysWhereInLine(t *testing.T) {
	w := newFullWorld(t)
	w.queues(aJob("huge", pods(100), annotated(v1alpha1.AnnotationClusterSelector, "zone=a")))
	w.queues(aJob("wide", pods(8)), aJob("later", pods(1)))
	w.ends("small-1")
	if huge, err := w.Explain(w.Context(), inTeam("huge")); err != nil || huge.Waiting != nil || len(huge.Line) != 2 {
		t.Errorf("huge, which fits nowhere, and has no place among the others: %+v, %v", huge, err)
	}
	wide, err := w.Explain(w.Context(), inTeam("wide"))
	if err != nil {
		t.Fatal(err)
	}
	// small-8 is the last that started, 7 s after noon.
	start := metav1.NewTime(noon.Add(7*time.Second + time.Hour + 30*time.Second)) // and half a minute for its last Pod
	if want := (v1alpha1.WaitingExplanation{Place: 1, Of: 2, Worker: "a", ExpectedStart: &start, Latest: true}); !equality.Semantic.DeepEqual(wide.Waiting, &want) {
		t.Errorf("wide: %+v, want %+v", wide.Waiting, want)
	}
	later, err := w.Explain(w.Context(), inTeam("later"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (v1alpha1.WaitingExplanation{Place: 2, Of: 2}); !equality.Semantic.DeepEqual(later.Waiting, &want) {
		t.Errorf("later: %+v, want %+v", later.Waiting, want)
	}
	if l := later.Line; len(l) != 2 || l[0].Name != "wide" || l[1].Name != "later" || l[1].Place != 2 {
		t.Errorf("the line is %+v", l)
	}
	if a := later.Workers[0]; a.Name != "a" || a.Answer != v1alpha1.PlacementFitsLater || a.Reason != "Reserved" {
		t.Errorf("later in a: %+v, want it to be reserved", a)
	}
	if placed, err := w.Explain(w.Context(), inTeam("small-2")); err != nil || placed.Waiting != nil {
		t.Errorf("small-2: %+v, %v", placed, err)
	}
}

// A Job that is another when its turn comes goes as it is then, and holds nothing twice.
func TestJobChangesWhenItsTurnComes(t *testing.T) {
	w := newFullWorld(t)
	w.queues(aJob("next", pods(1)))
	w.worker("a").api.change(inTeam("small-1"), func(job *batchv1.Job) { job.Status.Succeeded = 1 })
	w.run()
	w.clock.Step(time.Second) // a walk has chosen a worker for it
	w.hub.change(inTeam("next"), annotated("note", "edited"))
	w.deliver()
	w.run()
	w.wantPlaced(map[string]string{"next": "a"})
	if free := w.worker("a").Free(jobKey, placement.Reads{}).Nodes[0].Free.MilliCPU; free != 0 {
		w.fail("%d of a are free, want 0", free)
	}
}

// A Job that waits isn't held, of any size. A large one goes when there is room, holds up nobody,
// and has no reservation.
func TestLargeJobInLine(t *testing.T) {
	large := func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", 64<<10)}
	}
	w := newFullWorld(t)
	w.queues(aJob("large", pods(2), large), aJob("small", pods(1)))
	for _, name := range []string{"large", "small"} {
		if wait := maps.Collect(w.line.Waits())[inTeam(name)]; !wait.InLine || wait.Held {
			w.fail("%s: %+v", name, wait)
		}
	}
	w.ends("small-1")
	w.wantPlaced(map[string]string{"large": "", "small": "a"})
	w.ends("small-2")
	w.wantPlaced(map[string]string{"large": ""})
	w.ends("small-3")
	w.wantPlaced(map[string]string{"large": "a"})
}
