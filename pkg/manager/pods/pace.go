package pods

import (
	"container/list"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// The share of all writes that Pods have, in writes per second, and of one worker's Pods in it. A
// hub takes some 1,000 writes per second of one client.
const (
	writesPerSecond  = 200
	writesOfOne      = 100
	writesOfOneBurst = 200
)

// pace gives each worker's Pods their turns to be written: the namespaces one after the other, and
// the Pods of one in the order of their coming. So a namespace with very many writes delays itself.
// A Pod that has to wait is told for how long: it's looked at a few times, and not again and again.
type pace struct {
	mu      sync.Mutex
	workers map[string]*turns
	pods    map[types.NamespacedName]*waiter
}

// waiter is a Pod that waits for its turn, or has it and hasn't come since.
type waiter struct {
	worker, namespace string
	// place in the namespace's queue; nil: it's the Pod's turn.
	place *list.Element
	// before is how many have been in the queue before it.
	before int
}

// turns are those of one worker's Pods.
type turns struct {
	limiter *rate.Limiter
	// namespaces that have Pods that wait, and the same in the order of their turns.
	namespaces map[string]*namespaceTurns
	order      list.List
}

// namespaceTurns has the Pods of a namespace that wait, in order; never none.
type namespaceTurns struct {
	place *list.Element
	pods  list.List
	// left is how many have been in the queue, and aren't any more.
	left int
}

func newPace() *pace {
	return &pace{workers: map[string]*turns{}, pods: map[types.NamespacedName]*waiter{}}
}

// take returns how long a Pod has to wait for its turn; zero: this is it.
func (p *pace) take(worker string, pod types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.workers[worker]
	if of == nil {
		of = &turns{limiter: rate.NewLimiter(writesOfOne, writesOfOneBurst), namespaces: map[string]*namespaceTurns{}}
		p.workers[worker] = of
	}
	w := p.pods[pod]
	if w == nil || w.worker != worker {
		p.leaveLocked(pod)
		w = of.add(&waiter{worker: worker, namespace: pod.Namespace})
		p.pods[pod] = w
	}
	of.advance(now)
	if w.place == nil {
		delete(p.pods, pod)
		return 0
	}
	return of.wait(w, now)
}

// leave gives back the turn of a Pod that needs none any more.
func (p *pace) leave(pod types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(pod)
}

func (p *pace) leaveLocked(pod types.NamespacedName) {
	w := p.pods[pod]
	if w == nil {
		return
	}
	delete(p.pods, pod)
	if w.place != nil {
		p.workers[w.worker].remove(w)
	}
}

// forget drops what is known of a worker.
func (p *pace) forget(worker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, worker)
	maps.DeleteFunc(p.pods, func(_ types.NamespacedName, w *waiter) bool { return w.worker == worker })
}

func (t *turns) add(w *waiter) *waiter {
	n := t.namespaces[w.namespace]
	if n == nil {
		n = &namespaceTurns{}
		n.place = t.order.PushBack(n)
		t.namespaces[w.namespace] = n
	}
	w.before = n.left + n.pods.Len()
	w.place = n.pods.PushBack(w)
	return w
}

// remove takes a Pod out of the queue of its namespace, which is forgotten when it's empty.
func (t *turns) remove(w *waiter) {
	n := t.namespaces[w.namespace]
	n.pods.Remove(w.place)
	n.left++
	w.place = nil
	if n.pods.Len() == 0 {
		t.order.Remove(n.place)
		delete(t.namespaces, w.namespace)
	}
}

// advance gives the Pods that are next as many turns as there are.
func (t *turns) advance(now time.Time) {
	for t.order.Len() > 0 && t.limiter.AllowN(now, 1) {
		next := t.order.Front()
		t.order.MoveToBack(next)
		t.remove(next.Value.(*namespaceTurns).pods.Front().Value.(*waiter))
	}
}

// wait is how long a Pod has to wait if no others come.
func (t *turns) wait(w *waiter, now time.Time) time.Duration {
	own := t.namespaces[w.namespace]
	before := max(w.before-own.left, 0)
	all := before + 1
	for _, other := range t.namespaces {
		if other != own {
			all += min(other.pods.Len(), before+1)
		}
	}
	wait := (float64(all) - t.limiter.TokensAt(now)) / writesOfOne
	return max(time.Duration(wait*float64(time.Second)), time.Millisecond)
}
