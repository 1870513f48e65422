package job

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// newTieredWorld has the worker a, which is owned, and b, which is rented. Both have 8 CPUs, and
// those of a are in use by the Job holder.
func newTieredWorld(t *testing.T) *world {
	w := newWorld(t)
	w.worker("a").view.Labels = map[string]string{"tier": "owned"}
	w.worker("b").view.Labels = map[string]string{"tier": "rented"}
	// the user's wish goes before the price
	w.worker("a").view.Spec.Cost = v1alpha1.Cost{"cpu": oneCPU}
	w.queues(aJob("holder", pods(8), prefers("tier=owned")))
	w.wantPlaced(map[string]string{"holder": "a"})
	return w
}

func prefers(value string) func(*batchv1.Job) {
	return annotated(v1alpha1.AnnotationClusterPreference, value)
}

const ownedFirst = "tier=owned; * after 5m"

// stepTo lets time go by until some time after noon.
func (w *world) stepTo(after time.Duration) {
	w.Helper()
	w.step(noon.Add(after).Sub(w.clock.Now()))
}

// A Job waits for the workers that it prefers, and goes to another when its wait is over, without
// any event.
func TestWaitsForItsPreference(t *testing.T) {
	w := newTieredWorld(t) // a second has gone by
	w.queues(aJob("waits", pods(1), prefers(ownedFirst)), aJob("strict", pods(1), prefers("tier=owned")))
	w.stepTo(5 * time.Minute)
	w.wantPlaced(map[string]string{"waits": ""})
	e, err := w.Explain(w.Context(), inTeam("waits"))
	if want := "1 Insufficient cpu, 1 not preferred until " + noon.Add(5*time.Minute+time.Second).Format(time.RFC3339); err != nil || !strings.Contains(e.Message, want) {
		t.Errorf("%q, %v, want %q", e.Message, err, want)
	}
	w.stepTo(5*time.Minute + time.Second)
	w.wantPlaced(map[string]string{"waits": "b", "strict": ""})
	w.step(time.Hour)
	w.wantPlaced(map[string]string{"strict": ""})
	w.ends("holder")
	w.wantPlaced(map[string]string{"strict": "a"})
}

// It goes to the one that it prefers when there is room in time.
func TestGetsItsPreference(t *testing.T) {
	w := newTieredWorld(t)
	w.queues(aJob("waits", pods(1), prefers(ownedFirst)))
	w.stepTo(4 * time.Minute)
	w.ends("holder")
	w.wantPlaced(map[string]string{"waits": "a"})
}

// The wait is that of the Job, not of the process.
func TestPreferenceSurvivesARestart(t *testing.T) {
	w := newTieredWorld(t)
	w.queues(aJob("waits", pods(1), prefers(ownedFirst)))
	w.stepTo(3 * time.Minute)
	w.killed, w.cacheSyncs = true, true
	w.stepTo(5 * time.Minute)
	w.wantPlaced(map[string]string{"waits": ""})
	w.step(2 * time.Second)
	w.wantPlaced(map[string]string{"waits": "b"})
}

// A Job that is created suspended waits from when it's resumed.
func TestWaitBeginsWhenResumed(t *testing.T) {
	w := newTieredWorld(t)
	w.queues(aJob("train", pods(1), prefers(ownedFirst), suspended(true)))
	w.stepTo(time.Hour)
	w.resumes()
	w.stepTo(time.Hour + 4*time.Minute)
	w.wantPlaced(map[string]string{"train": ""})
	w.stepTo(time.Hour + 6*time.Minute)
	w.wantPlaced(map[string]string{"train": "b"})
}

// Kueue says when a Job starts, and holds its quota until then. What the Job prefers still goes
// first.
func TestKueueDoesNotWaitForAPreference(t *testing.T) {
	w := newTieredWorld(t)
	w.kueue.admissions["queued"] = dispatch.Admission{Queued: true}
	w.kueue.admissions["next"] = dispatch.Admission{Queued: true}
	w.queues(aJob("queued", pods(1), prefers(ownedFirst)))
	w.wantPlaced(map[string]string{"queued": "b"})
	w.ends("holder")
	w.queues(aJob("next", pods(1), prefers(ownedFirst)))
	w.wantPlaced(map[string]string{"next": "a"})
}

// Nothing is kept for a Job in a worker that it doesn't want yet, and what is kept is free when it
// goes elsewhere.
func TestReservationIsWherePreferred(t *testing.T) {
	w := newTieredWorld(t)
	w.submits(aJob("rented", pods(4), prefers("tier=rented"), deadline(time.Hour)))
	w.step(time.Second)
	w.queues(aJob("wide", pods(8), prefers(ownedFirst)))
	w.queues(aJob("small", pods(1), prefers("tier=rented")))
	w.wantPlaced(map[string]string{"small": "b"})
	if r := w.line.Reservations(); len(r) != 1 || r["a"] == nil {
		w.fail("reservations %+v, want one in a", r)
	}
	w.stepTo(6 * time.Minute)
	w.ends("small", "rented")
	w.wantPlaced(map[string]string{"wide": "b"})
	if r := w.line.Reservations(); len(r) != 0 {
		w.fail("reservations %+v, want none", r)
	}
}

// A Job in several workers spreads to those that open to it.
func TestDividedJobSpreadsByPreference(t *testing.T) {
	w := newTieredWorld(t)
	w.parallelism = 12
	w.ends("holder")
	w.queues(aJob("train", pods(12), func(job *batchv1.Job) { job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) },
		annotated(v1alpha1.AnnotationMaxClusters, "All"), prefers(ownedFirst)))
	w.stepTo(5 * time.Minute)
	on := func() string { return strings.Join(shards.WorkersOf(w.hub.jobs[jobKey]), ",") }
	if on() != "a" {
		w.fail("it's on %s", on())
	}
	w.stepTo(6 * time.Minute)
	if on() != "a,b" {
		w.fail("it's on %s", on())
	}
}

// An edit of the preference counts at once; one that can't be read places the Job nowhere.
func TestPreferenceIsEdited(t *testing.T) {
	w := newTieredWorld(t)
	w.queues(aJob("train", pods(1), prefers("tier owned")))
	w.wantPlaced(map[string]string{"train": ""})
	w.edits("prefers the owned", prefers(ownedFirst))
	w.step(time.Second)
	w.wantPlaced(map[string]string{"train": ""})
	w.edits("wants any", prefers("*"))
	w.step(time.Second)
	w.wantPlaced(map[string]string{"train": "b"})
}

// What a Job prefers, it takes, also when that is reserved for a Job behind it.
func TestPreferredWorkerIsNotAvoided(t *testing.T) {
	w := newTieredWorld(t)
	w.classes = priorityClasses{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}}
	w.queues(aJob("other", pods(1), prefers("tier=rented")), aJob("wide", pods(8)))
	w.hub.change(inTeam("holder"), func(job *batchv1.Job) { *job.Spec.Parallelism = 7 })
	w.step(time.Second)
	if r := w.line.Reservations(); r["b"] == nil && r["a"] == nil {
		w.fail("reservations %+v", r)
	}
	for worker := range w.line.Reservations() {
		tier := w.worker(worker).view.Labels["tier"]
		w.queues(aJob("first", pods(1), ofClass("high"), prefers("tier="+tier+"; *")))
		w.wantPlaced(map[string]string{"first": worker})
	}
}

const ownedSoon = "tier=owned; *; return after 10m"

// newAwayWorld has the Job train in b, with some of its four Pods' work done, while a is full.
func newAwayWorld(t *testing.T) *world {
	w := newTieredWorld(t)
	w.queues(aJob("train", prefers(ownedSoon)))
	w.wantPlaced(map[string]string{"train": "b"})
	w.worker("b").completes(1)
	w.step(15 * time.Minute) // so the rest takes 45
	w.wantPlaced(map[string]string{"train": "b"})
	return w
}

// A Job goes back to the worker that it prefers, with its progress, when that has had room for long
// enough.
func TestGoesBack(t *testing.T) {
	w := newAwayWorld(t)
	w.ends("holder")
	w.step(9 * time.Minute)
	w.wantPlaced(map[string]string{"train": "b"})
	w.step(2 * time.Minute)
	w.wantPlaced(map[string]string{"train": "a"})
	if job := w.worker("a").api.jobs[jobKey]; job == nil || job.Status.Succeeded != 1 {
		w.fail("it begins anew: %+v", job)
	}
	if !slices.ContainsFunc(w.events, func(e string) bool {
		return strings.Contains(e, "Moved from worker b to worker a: the Job prefers worker a, which has had room for it for 10m0s")
	}) {
		w.fail("no event says so: %v", w.events)
	}
}

// The time begins again when the room is gone meanwhile.
func TestGoesBackOnlyToWhatLasts(t *testing.T) {
	w := newAwayWorld(t)
	w.ends("holder")
	w.step(7 * time.Minute)
	w.queues(aJob("other", pods(8), prefers("tier=owned")))
	w.step(time.Hour)
	w.wantPlaced(map[string]string{"train": "b", "other": "a"})
	w.ends("other")
	w.step(9 * time.Minute)
	w.wantPlaced(map[string]string{"train": "b"})
	w.step(2 * time.Minute)
	w.wantPlaced(map[string]string{"train": "a"})
}

// What doesn't go back: a Job that nobody wants to, one that is near its end, one that would take
// what is reserved, and one that Kueue has started.
func TestDoesNotGoBack(t *testing.T) {
	for name, change := range map[string]func(*world){
		"not asked for": func(w *world) { w.edits("wants to stay", prefers("tier=owned; *")) },
		"near its end":  func(w *world) { w.worker("b").completes(2) },
		"suspended":     func(w *world) { w.suspends() },
		"kueue":         func(w *world) { w.kueue.admissions["train"] = dispatch.Admission{Queued: true} },
		"reserved": func(w *world) { // keeps takes the place of holder, and wide waits for all of a
			w.queues(aJob("keeps", pods(1), prefers("tier=owned")), aJob("wide", pods(8), prefers("tier=owned")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAwayWorld(t)
			change(w)
			w.step(time.Second)
			w.ends("holder")
			w.step(25 * time.Minute)
			w.wantPlaced(map[string]string{"train": "b"})
		})
	}
}

// What runs isn't stopped to wait elsewhere for nodes.
func TestGoesBackToNodesThatExist(t *testing.T) {
	w := newAwayWorld(t)
	w.worker("a").grows(9)
	w.step(25 * time.Minute)
	w.wantPlaced(map[string]string{"train": "b"})
	w.ends("holder")
	w.step(11 * time.Minute)
	w.wantPlaced(map[string]string{"train": "a"})
}

// Jobs that run don't find out whether a worker that was out takes Pods again: all would go at
// once. When no other Job has come to try for long, one of them does.
func TestRunningJobsDontTryAStockout(t *testing.T) {
	w := newTieredWorld(t)
	w.queues(aJob("one", pods(2), prefers(ownedSoon)), aJob("two", pods(2), prefers(ownedSoon)))
	w.worker("a").isOut(true)
	w.ends("holder")
	w.queues(aJob("first", pods(1), prefers("tier=owned; *")))
	w.wantPlaced(map[string]string{"one": "b", "two": "b", "first": "a"})
	w.minutes(60)
	w.wantPlaced(map[string]string{"one": "b", "two": "b", "first": "b"})
	tried := false
	for range 60 {
		w.minutes(1)
		one, two := w.placedOn("one") == "a", w.placedOn("two") == "a"
		if tried = tried || one || two; one && two {
			w.fail("both went to try")
		}
	}
	if !tried {
		w.fail("neither tries")
	}
	w.worker("a").isOut(false)
	w.queues(aJob("next", pods(1), prefers("tier=owned")))
	w.minutes(30)
	w.wantPlaced(map[string]string{"next": "a", "one": "a", "two": "a"})
}

// Nothing is looked at again and again while there is no room, nor are those woken whom a change
// can't help.
func TestNobodyIsLookedAtWhileThereIsNoRoom(t *testing.T) {
	w := newAwayWorld(t)
	// train needs two
	w.hub.change(inTeam("holder"), func(job *batchv1.Job) { *job.Spec.Parallelism = 7 })
	w.run()
	w.clock.Step(time.Second)
	for _, r := range w.queue.requests {
		if r.Name == "train" {
			w.fail("it's enqueued")
		}
	}
	w.run()
	if !w.line.AwaitsReturn(jobKey) {
		w.fail("it doesn't wait")
	}
	if err := w.hub.delete(jobKey, client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.step(time.Second)
	if waits := maps.Collect(w.line.Waits()); len(waits) != 0 {
		w.fail("%v still wait", waits)
	}
}
