package queue

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func numbered(n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(n)}}
}

func TestBacklog(t *testing.T) {
	q := New("backlog", nil)
	defer q.ShutDown()
	b := WithBacklog(q)
	const all = 3 * maxReady
	for range 2 { // the second time they're known, inside or outside
		for i := range all { // their priorities change nothing in their order
			b.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-1 - i%2)}, numbered(i))
		}
	}
	if ready := q.Len(); ready > maxReady {
		t.Errorf("%d requests are ready, want at most %d", ready, maxReady)
	}
	b.Add(numbered(-1)) // what comes later, and isn't held back
	seen := map[reconcile.Request]int{}
	for i := range all + 1 {
		r, priority, _ := b.GetWithPriority()
		seen[r]++
		if first := r == numbered(-1); first != (i == 0) || first != (priority == 0) {
			t.Fatalf("request %d is %s with priority %d", i, r.Name, priority)
		}
		if i > 0 && i <= maxReady && r != numbered(i-1) {
			t.Fatalf("request %d is %s", i, r.Name)
		}
		b.Done(r)
	}
	if len(seen) != all+1 {
		t.Errorf("%d requests came, want %d", len(seen), all+1)
	}
	if is := b.(*backlog); is.waiting != nil {
		t.Errorf("%d are left outside", is.waiting.Len())
	}
}

// However many requests of one namespace wait, those of another come soon.
func TestNamespacesTakeTurnsInABacklog(t *testing.T) {
	q := New("turns", nil)
	defer q.ShutDown()
	b := WithBacklog(q)
	low := priorityqueue.AddOpts{Priority: ptr.To(-1)}
	for i := range 10 * maxReady {
		b.AddWithOpts(low, numbered(i))
	}
	comesWithin(t, b, maxReady+2, func(int) {})
}

// comesWithin adds a request of another namespace, which is to be among the next ones. Others may
// come after each of these.
func comesWithin(t *testing.T, b Queue, most int, after func(nth int)) {
	t.Helper()
	other := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "other", Name: "one"}}
	b.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-1)}, other)
	for i := range most {
		r, _, _ := b.GetWithPriority()
		if b.Done(r); r == other {
			return
		}
		after(i)
	}
	t.Errorf("not among the first %d", most)
}

// Very many requests that don't wait outside, as they come with a delay, don't keep those that do
// waiting.
func TestABacklogFlowsBesideOthers(t *testing.T) {
	q := New("beside", nil)
	defer q.ShutDown()
	b := WithBacklog(q)
	for i := range 2 * maxReady {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-1)}, numbered(i))
	}
	comesWithin(t, b, 2*maxReady+1, func(nth int) { // it never becomes fewer
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-1)}, numbered(2*maxReady+nth))
	})
}

// A delay begins at once, however many requests wait.
func TestABacklogHoldsBackNoDelayedRequest(t *testing.T) {
	q := New("delayed", nil)
	defer q.ShutDown()
	b := WithBacklog(q)
	for i := range 2 * maxReady {
		b.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-2)}, numbered(i))
	}
	b.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-1), After: time.Millisecond}, numbered(-1))
	for range 2*maxReady + 1 {
		r, priority, _ := b.GetWithPriority()
		b.Done(r)
		if r == numbered(-1) {
			if priority != -1 {
				t.Errorf("its priority is %d", priority)
			}
			return
		}
	}
	t.Error("it didn't come")
}
