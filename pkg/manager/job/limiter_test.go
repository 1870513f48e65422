package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
)

func TestLimiterDefers(t *testing.T) {
	var enqueued []types.NamespacedName
	l := newLimiter(2, 128, func(keys ...types.NamespacedName) { enqueued = append(enqueued, keys...) })
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

	for _, name := range []string{"one", "two"} {
		if !l.acquire("slow", key(name)) {
			t.Fatalf("no place for %s of an idle worker", name)
		}
	}
	if l.acquire("slow", key("three")) || l.acquire("slow", key("four")) {
		t.Fatal("a busy worker took a Job")
	}
	if l.placeOrDefer("slow", key("four")) || !l.placeOrDefer("quick", key("five")) {
		t.Fatal("it isn't said that there's no place, or that there is one")
	}
	if !l.acquire("quick", key("five")) {
		t.Fatal("a busy worker kept a Job from another")
	}
	l.release("slow")
	l.release("slow")
	if want := []types.NamespacedName{key("three"), key("four")}; !slices.Equal(enqueued, want) {
		t.Errorf("enqueued %v, want %v", enqueued, want)
	}
	l.release("quick")
	for _, key := range enqueued {
		l.began(key)
		l.ended(key)
	}
	if len(l.workers) != 0 {
		t.Errorf("left behind: %v", l.workers)
	}
}

// A Job that has waited for a place isn't passed by those that come when it's woken.
func TestAPlaceIsKeptForWhoIsWoken(t *testing.T) {
	var enqueued []types.NamespacedName
	l := newLimiter(1, 128, func(keys ...types.NamespacedName) { enqueued = append(enqueued, keys...) })
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	l.acquire("worker", key("first"))
	for _, name := range []string{"second", "third"} {
		l.acquire("worker", key(name))
	}
	l.release("worker")
	if l.ended(key("first")); l.placeOrDefer("worker", key("new")) {
		t.Error("a new Job has the place of one that was woken")
	}
	if !l.acquire("worker", key("second")) {
		t.Fatal("a Job that was woken has no place")
	}
	l.release("worker")
	l.began(key("third"))
	l.ended(key("third")) // it finds nothing to do
	if got := fmt.Sprint(enqueued); got != "[/second /third /new]" {
		t.Errorf("woken: %s", got)
	}
}

// A Job may be woken while it's reconciled, as its request to another worker hangs: the place is
// kept for the reconcile that it's enqueued for.
func TestAPlaceIsKeptForTheNextReconcile(t *testing.T) {
	l := newLimiter(1, 128, func(...types.NamespacedName) {})
	first, hangs, late := types.NamespacedName{Name: "first"}, types.NamespacedName{Name: "hangs"}, types.NamespacedName{Name: "late"}
	l.acquire("worker", first)
	l.began(hangs)
	if l.acquire("worker", hangs) {
		t.Fatal("there are two places")
	}
	l.release("worker")
	if l.ended(hangs); l.placeOrDefer("worker", late) {
		t.Error("a later Job has its place")
	}
	if l.began(hangs); !l.acquire("worker", hangs) {
		t.Error("it goes to the back")
	}
	l.release("worker")
	l.ended(hangs)
	l.began(late)
	l.ended(late)
	if len(l.workers) > 0 {
		t.Errorf("left behind: %v", l.workers)
	}
}

// Of workers that let every request hang until its time is over, each has a share of all
// reconciles, however many there are: there is one more share for the next.
func TestWorkersThatHangHaveAShareEach(t *testing.T) {
	const all = 128
	l := newLimiter(16, all, func(...types.NamespacedName) {})
	held, workers := 0, 0
	asks := func(worker string) {
		for l.acquire(worker, types.NamespacedName{Name: "one more"}) {
			held++
		}
	}
	for ; workers < 20; workers++ {
		asks(strconv.Itoa(workers))
	}
	for range 2 { // their requests end, and the next ones follow
		for worker := range workers {
			for range l.workers[strconv.Itoa(worker)].busy {
				l.release(strconv.Itoa(worker))
				held--
			}
			asks(strconv.Itoa(worker))
		}
	}
	if share := all / (workers + 1); held != workers*share {
		t.Errorf("%d workers hold %d of %d, want %d each", workers, held, all, share)
	}
}

// Places that a worker took while its share was larger are over with the requests that took them:
// whatever waits for the worker, none of them is taken again.
func TestPlacesOfALargerShareDrain(t *testing.T) {
	const all, limit = 32, 16
	var woken []types.NamespacedName
	l := newLimiter(limit, all, func(keys ...types.NamespacedName) { woken = append(woken, keys...) })
	for i := range 5 * limit {
		l.acquire("hangs", types.NamespacedName{Name: strconv.Itoa(i)})
	}
	if busy := l.workers["hangs"].busy; busy != limit {
		t.Fatalf("alone it has %d places", busy)
	}
	for _, worker := range []string{"b", "c"} {
		for l.acquire(worker, types.NamespacedName{Name: "one more"}) {
			continue
		}
	}
	const share = all / 4 // one more is left
	for ended := range limit {
		woken = nil
		l.release("hangs")
		for _, key := range woken {
			if l.began(key); !l.acquire("hangs", key) {
				t.Errorf("%s was woken, and has no place", key)
			}
		}
		if busy := l.workers["hangs"].busy; busy != max(limit-ended-1, share) {
			t.Errorf("%d places, after %d requests have ended", busy, ended+1)
		}
	}
}

// A namespace has very many Jobs, each of which takes long in a worker, such as to copy what its
// Pods refer to: a Job of another namespace is the next but one. No more Jobs are woken at a time
// than there are places, whatever becomes of those that are.
func TestLimiterTakesTurns(t *testing.T) {
	var enqueued []types.NamespacedName
	l := newLimiter(2, 128, func(keys ...types.NamespacedName) { enqueued = append(enqueued, keys...) })
	for i := range 1000 {
		l.acquire("worker", types.NamespacedName{Namespace: "many", Name: strconv.Itoa(i)})
	}
	l.acquire("worker", types.NamespacedName{Namespace: "few", Name: "a"})
	l.release("worker")
	l.release("worker")
	for i := range 999 {
		if len(enqueued) != min(i+2, 999) {
			t.Fatalf("%d have come, and %d were woken", i, len(enqueued))
		}
		l.began(enqueued[i])
		if i%2 == 0 && l.acquire("worker", enqueued[i]) { // the others find nothing to do
			l.release("worker")
		}
		l.ended(enqueued[i])
	}
	if got := fmt.Sprint(enqueued[:3]); got != "[many/2 few/a many/3]" || len(l.workers) > 0 {
		t.Errorf("the first are %s, and %d workers are left behind", got, len(l.workers))
	}
}

// Jobs come in any order, are deferred more than once, and find nothing to do when they come back:
// all of them have to have their turn.
func TestLimiterForgetsNoJob(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var turns []types.NamespacedName
		l := newLimiter(1+random.IntN(3), 128, func(keys ...types.NamespacedName) { turns = append(turns, keys...) })
		waiting := map[types.NamespacedName]bool{}
		inside := 0
		for range 200 {
			if random.IntN(2) == 0 { // of ten names, some come again while they're deferred
				turns = append(turns, types.NamespacedName{Name: strconv.Itoa(random.IntN(10))})
			}
			switch {
			case len(turns) > 0 && random.IntN(2) == 0:
				key := turns[0]
				turns = turns[1:]
				delete(waiting, key)
				l.began(key)
				switch {
				case random.IntN(4) == 0: // nothing to do for it
				case l.acquire("worker", key):
					inside++
				default:
					waiting[key] = true
				}
				l.ended(key)
			case inside > 0:
				inside--
				l.release("worker")
			}
		}
		for ; inside > 0; inside-- {
			l.release("worker")
		}
		for ; len(turns) > 0; turns = turns[1:] {
			delete(waiting, turns[0])
			l.began(turns[0])
			l.ended(turns[0])
		}
		if len(waiting) > 0 || len(l.workers) > 0 {
			t.Fatalf("seed %d: forgotten %v, left behind %v", seed, waiting, l.workers)
		}
	}
}

// isBusy reports whether a reconcile has a place for a worker.
func (l *limiter) isBusy(worker string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers[worker] != nil
}

// fills takes all places of a worker for others, who keep them.
func (w *world) fills(worker string) {
	for range w.options.WorkerConcurrency {
		w.limiter.acquire(worker, types.NamespacedName{Name: "others"})
	}
}

// A worker in which a Job can't be created yet delays nothing else: neither that the Job leaves
// another one, nor that its queue is told.
func TestABusyWorkerDelaysOnlyWhatItGets(t *testing.T) {
	t.Run("Leaves", func(t *testing.T) {
		w := newWorld(t)
		runs(w)
		w.fills("b")
		w.worker("a").drains(true)
		w.step(2 * time.Minute)
		if m := w.worker("a").api.jobs[jobKey]; m != nil && !mirror.Suspended(m) {
			w.fail("the Job runs on where it leaves")
		}
	})
	t.Run("Queued", func(t *testing.T) {
		w := newWorld(t)
		w.fills("a")
		isQueued(w)
		w.step(2 * time.Minute)
		if len(w.kueue.changed) == 0 {
			w.fail("Kueue isn't told of the placement")
		}
	})
	t.Run("Deleted", func(t *testing.T) {
		w := newWorld(t)
		runs(w)
		w.fills("a")
		w.deletes(metav1.DeletePropagationBackground)
		w.step(2 * time.Minute)
		if m := w.worker("a").api.jobs[jobKey]; m == nil || m.DeletionTimestamp != nil || w.limiter.workers["a"].deferred.Len() != 1 {
			w.fail("the deletion doesn't wait for a place:\n%s", w.state())
		}
		w.limiter.release("a")
		w.step(2 * time.Minute)
		if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
			w.fail("the Job isn't deleted:\n%s", w.state())
		}
	})
	t.Run("Divides", func(t *testing.T) {
		w := newWorld(t)
		isDivided(w)
		w.fills("a")
		seen := w.look(t.Context(), jobKey)
		shard := seen.Divided.Placement.Shards[0]
		if _, err := w.hasReturned(t.Context(), seen, shard, shard.Indexes); !errors.Is(err, errWorkerBusy) || handlingOf(err) != ignore {
			w.fail("the worker is asked what it has given back: %v", err)
		}
	})
	t.Run("Waits", func(t *testing.T) {
		w := newWorld(t)
		w.fills("a")
		w.submits(aJob("train"))
		w.step(2 * time.Minute)
		if m := w.worker("a").api.jobs[jobKey]; m != nil || w.limiter.workers["a"].deferred.Len() != 1 {
			w.fail("the Job doesn't wait for a place")
		}
		for range 2 {
			w.limiter.release("a")
		}
		w.run()
		if w.worker("a").api.jobs[jobKey] == nil {
			w.fail("the Job has no mirror")
		}
	})
}
