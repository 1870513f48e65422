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

// pace gives Pods their turns to be written: the workers take turns, in each the namespaces, and of
// one the Pods in the order of their coming. So a namespace with very many writes delays itself, in
// however many workers it has them. A Pod that has to wait is told for how long: it is looked at a
// few times, and not again and again.
type pace struct {
	mu      sync.Mutex
	all     *rate.Limiter
	workers map[string]*turns
	// order has the workers with Pods that wait, in the order of their turns.
	order list.List
	pods  map[types.NamespacedName]*waiter
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
	// place in the order of workers; nil: none of its Pods waits.
	place *list.Element
	// waiting is how many Pods wait.
	waiting int
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
	return &pace{all: rate.NewLimiter(writesPerSecond, 2*writesPerSecond), workers: map[string]*turns{}, pods: map[types.NamespacedName]*waiter{}}
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
		if of.place == nil {
			of.place = p.order.PushBack(of)
		}
	}
	p.advance(now)
	if w.place == nil {
		delete(p.pods, pod)
		return 0
	}
	return p.wait(of, w, now)
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
		of := p.workers[w.worker]
		of.remove(w)
		p.settle(of)
	}
}

// settle takes a worker of whose Pods none waits out of the order.
func (p *pace) settle(of *turns) {
	if of.waiting == 0 && of.place != nil {
		p.order.Remove(of.place)
		of.place = nil
	}
}

// forget drops what is known of a worker.
func (p *pace) forget(worker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.workers[worker]; of != nil && of.place != nil {
		p.order.Remove(of.place)
	}
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
	t.waiting++
	return w
}

// remove takes a Pod out of the queue of its namespace, which is forgotten when it's empty.
func (t *turns) remove(w *waiter) {
	n := t.namespaces[w.namespace]
	n.pods.Remove(w.place)
	n.left++
	t.waiting--
	w.place = nil
	if n.pods.Len() == 0 {
		t.order.Remove(n.place)
		delete(t.namespaces, w.namespace)
	}
}

// advance gives the Pods that are next as many turns as there are.
func (p *pace) advance(now time.Time) {
	for left := p.order.Len(); left > 0 && p.all.TokensAt(now) >= 1; {
		of := p.order.Front().Value.(*turns)
		p.order.MoveToBack(of.place)
		if !of.limiter.AllowN(now, 1) {
			left--
			continue
		}
		p.all.AllowN(now, 1)
		of.next()
		p.settle(of)
		left = p.order.Len()
	}
}

// next gives the Pod that is next its turn.
func (t *turns) next() {
	of := t.order.Front()
	t.order.MoveToBack(of)
	t.remove(of.Value.(*namespaceTurns).pods.Front().Value.(*waiter))
}

// wait is how long a Pod has to wait if no others come.
func (p *pace) wait(of *turns, w *waiter, now time.Time) time.Duration {
	own := of.namespaces[w.namespace]
	before := max(w.before-own.left, 0)
	here := before + 1
	for _, other := range of.namespaces {
		if other != own {
			here += min(other.pods.Len(), before+1)
		}
	}
	all := here
	for _, other := range p.workers {
		if other != of {
			all += min(other.waiting, here)
		}
	}
	wait := max((float64(here)-of.limiter.TokensAt(now))/writesOfOne, (float64(all)-p.all.TokensAt(now))/writesPerSecond)
	return max(time.Duration(wait*float64(time.Second)), time.Millisecond)
}
