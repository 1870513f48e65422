package job

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/packed"
)

// TestLargeJobsTakeTurns follows who may read a Job of some weight, and when.
func TestLargeJobsTakeTurns(t *testing.T) {
	clock := testingclock.NewFakeClock(noon)
	whole := newReadMemory(clock)
	open := func(namespace, name string) *readShare {
		return &readShare{readMemory: whole, key: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	want := func(step string, a *readShare, weight int64, want bool) {
		t.Helper()
		if got := a.reserve(weight); got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
	once := open("once", "job")
	once.isOnce = true
	huge, again, medium, other := open("greedy", "huge"), open("greedy", "again"), open("medium", "job"), open("other", "job")
	want("the largest Job, while there is no other", huge, 3*wholeBytes, true)
	want("the same Job again", huge, 3*wholeBytes, true)
	want("another one of the namespace", again, 3*wholeBytes, false)
	want("who asks once", once, wholeBytes, false)
	want("of others", other, 2*wholeBytes, false)
	want("of others, medium", medium, 1<<20, false)
	for range 1000 {
		want("small ones", open("small", "job"), packed.SmallWeight, true)
	}
	huge.release()
	want("the namespace isn't the next", again, 3*wholeBytes, false)
	want("the next but one", medium, 1<<20, false)
	want("the next", other, 2*wholeBytes, true)
	other.release()
	want("it, too, isn't the next again", other, 2*wholeBytes, false)
	want("the namespace, but it isn't the next", again, 3*wholeBytes, false)
	clock.Step(waitsFor + 1)
	want("nobody has asked for long", again, 3*wholeBytes, true)
	again.release()
	medium.release()
	other.release()
	if whole.held != 0 || len(whole.namespaces)+len(whole.waiting)+len(whole.queues) > 0 {
		t.Errorf("left: %d, %v, %v", whole.held, whole.namespaces, whole.waiting)
	}
}

// askers are Jobs of several namespaces that ask for memory, and who was woken.
type askers struct {
	*testing.T
	*readMemory
	clock *testingclock.FakeClock
	woken []types.NamespacedName
}

func newAskers(t *testing.T) *askers {
	t.Helper()
	c := &askers{T: t, clock: testingclock.NewFakeClock(noon)}
	c.readMemory = newReadMemory(c.clock)
	c.wake = func(keys ...types.NamespacedName) { c.woken = append(c.woken, keys...) }
	return c
}

func (c *askers) job(namespace, name string) *readShare {
	return &readShare{readMemory: c.readMemory, key: types.NamespacedName{Namespace: namespace, Name: name}}
}

// asks has a Job ask for a share. If it gets none, its turn is over.
func (c *askers) asks(job *readShare, weight int64, want bool) {
	c.Helper()
	got := job.reserve(weight)
	if got != want {
		c.Errorf("%s gets a share: %t", job.key, got)
	}
	if !got {
		job.release()
	}
}

// wakes tells who was woken since the last time.
func (c *askers) wakes(want ...*readShare) {
	c.Helper()
	var keys []types.NamespacedName
	for _, job := range want {
		keys = append(keys, job.key)
	}
	if !slices.Equal(c.woken, keys) {
		c.Errorf("woken: %v, want %v", c.woken, keys)
	}
	c.woken = nil
}

// Those of a namespace that wait go in the order of their coming: small ones don't pass a large
// one, and don't keep other namespaces from going.
func TestLargeJobsOfANamespaceKeepTheirOrder(t *testing.T) {
	c := newAskers(t)
	first, large, small, other := c.job("team", "first"), c.job("team", "large"), c.job("team", "small"), c.job("other", "job")
	c.asks(first, 20<<20, true)
	c.asks(large, 30<<20, false)
	c.asks(small, 1<<20, false)
	c.asks(other, 30<<20, true)
	c.wakes()
	other.release()
	first.release()
	c.wakes(large)
	c.asks(small, 1<<20, false)
	c.asks(large, 30<<20, true)
	c.wakes(small)
	c.asks(small, 1<<20, true)
}

// A Job that waits, and is gone or needs no share any more at its next turn, holds up nobody.
func TestNoMemoryIsKeptForAJobThatIsGone(t *testing.T) {
	c := newAskers(t)
	huge, gone, small, next := c.job("a", "huge"), c.job("b", "gone"), c.job("c", "small"), c.job("d", "next")
	c.asks(huge, 3*wholeBytes, true)
	for _, job := range []*readShare{gone, small, next} {
		c.asks(job, 30<<20, false)
	}
	huge.release()
	c.wakes(gone)
	gone.release() // its turn finds no Job
	c.wakes(small)
	c.asks(small, packed.SmallWeight, true)
	small.release()
	c.wakes(next)
	c.asks(next, 30<<20, true)
	if len(c.waiting)+len(c.queues) > 0 {
		t.Errorf("left: %v", c.waiting)
	}
}

// Very many Jobs of a namespace have waited, and don't ask any more: they're dropped in one go. If
// each were sought among the others, that would take longer than a test may.
func TestJobsThatDontAskAreDroppedAtOnce(t *testing.T) {
	const many = 1 << 19
	c := newAskers(t)
	large := c.job("a", "large")
	c.asks(large, 3*wholeBytes, true)
	for i := range many {
		c.asks(c.job("many", strconv.Itoa(i)), 30<<20, false)
	}
	c.clock.Step(waitsFor + 1)
	large.release()
	c.wakes()
	if len(c.waiting)+len(c.queues) > 0 {
		t.Errorf("%d Jobs wait", len(c.waiting))
	}
}

// slowWorker doesn't answer before the manager gives up.
type slowWorker struct {
	*fakeWorker
	asked chan struct{}
}

// Client implements worker.
func (w *slowWorker) Client() client.Client {
	return interceptor.NewClient(w.fakeWorker.Client().(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			w.asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
	})
}

// A large Job whose worker doesn't answer gives its share to others that wait, whether they came
// before it asks the worker or after. Without them, it has all the time, and so have Jobs that have
// no share.
func TestASlowWorkerHoldsUpNoLargeJobs(t *testing.T) {
	w := newWorld(t)
	slow := &slowWorker{w.worker("a"), make(chan struct{})}
	done := make(chan error, 3)
	holds := func(namespace string, weight int64) *allowance {
		a := w.whole.open(types.NamespacedName{Namespace: namespace, Name: "large"})
		if !a.reserve(weight) {
			t.Errorf("%s has no share", namespace)
		}
		return a
	}
	asks := func(a *allowance) {
		go func() {
			asking := &turn{Snapshot: &dispatch.Snapshot{Key: a.key}, allowance: a}
			seed := dispatch.SeedMirror{At: dispatch.At{Mirror: aJob("large")}}
			err := asking.asks(t.Context(), slow, w.does(asking, slow, seed, new(result)))
			a.release()
			done <- err
		}()
		<-slow.asked
	}
	other := w.whole.open(types.NamespacedName{Namespace: "other", Name: "large"})
	waits := func() {
		if other.reserve(wholeBytes) {
			t.Error("memory is free while a worker is asked")
		}
		other.release()
	}
	gets := func() {
		w.clock.Step(yieldsAfter)
		if err := <-done; !errors.Is(err, errNoMemory) || handlingOf(err) != awaitEvent {
			t.Errorf("the Job of the slow worker: %v", err)
		}
		if woken := w.queue.requests; len(woken) != 1 || woken[0].NamespacedName != other.key {
			t.Errorf("woken: %v", woken)
		}
		w.queue = fakeQueue{}
		if !other.reserve(wholeBytes) {
			t.Error("the share isn't given to who waits")
		}
		other.release()
	}
	asks(holds("small", packed.SmallWeight))
	asks(holds("slow", 3*wholeBytes))
	waits()
	gets()
	before := holds("slow", 3*wholeBytes)
	waits()
	asks(before)
	gets()
	asks(holds("slow", 3*wholeBytes))
	w.clock.Step(2 * yieldsAfter)
	if len(done) > 0 {
		t.Errorf("ended for nobody: %v", <-done)
	}
}
