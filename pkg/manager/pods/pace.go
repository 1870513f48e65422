package pods

import (
	"container/list"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/turns"
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
	workers map[string]*workerTurns
	// order has the workers with Pods that wait, in the order of their turns.
	order list.List
	// pods are those that wait for their turn, or have it and haven't come since, with their workers.
	pods map[types.NamespacedName]string
}

// workerTurns are those of one worker's Pods.
type workerTurns struct {
	limiter *rate.Limiter
	// place in the order of workers; nil: none of its Pods waits.
	place   *list.Element
	waiting *turns.Queue
}

func newPace() *pace {
	return &pace{all: rate.NewLimiter(writesPerSecond, 2*writesPerSecond), workers: map[string]*workerTurns{}, pods: map[types.NamespacedName]string{}}
}

// take returns how long a Pod has to wait for its turn; zero: this is it.
func (p *pace) take(worker string, pod types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.workers[worker]
	if of == nil {
		of = &workerTurns{limiter: rate.NewLimiter(writesOfOne, writesOfOneBurst), waiting: turns.NewQueue()}
		p.workers[worker] = of
	}
	if at, known := p.pods[pod]; !known || at != worker {
		p.leaveLocked(pod)
		p.pods[pod] = worker
		of.waiting.Add(pod)
		if of.place == nil {
			of.place = p.order.PushBack(of)
		}
	}
	p.advance(now)
	if !of.waiting.Has(pod) {
		delete(p.pods, pod)
		return 0
	}
	return p.wait(of, pod, now)
}

// leave gives back the turn of a Pod that needs none any more.
func (p *pace) leave(pod types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(pod)
}

func (p *pace) leaveLocked(pod types.NamespacedName) {
	worker, known := p.pods[pod]
	if !known {
		return
	}
	delete(p.pods, pod)
	of := p.workers[worker]
	of.waiting.Remove(pod)
	p.settle(of)
}

// settle takes a worker of whose Pods none waits out of the order.
func (p *pace) settle(of *workerTurns) {
	if of.waiting.Len() == 0 && of.place != nil {
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
	maps.DeleteFunc(p.pods, func(_ types.NamespacedName, at string) bool { return at == worker })
}

// advance gives the Pods that are next as many turns as there are.
func (p *pace) advance(now time.Time) {
	for left := p.order.Len(); left > 0 && p.all.TokensAt(now) >= 1; {
		of := p.order.Front().Value.(*workerTurns)
		p.order.MoveToBack(of.place)
		if !of.limiter.AllowN(now, 1) {
			left--
			continue
		}
		p.all.AllowN(now, 1)
		of.waiting.Next(1)
		p.settle(of)
		left = p.order.Len()
	}
}

// wait is how long a Pod has to wait if no others come.
func (p *pace) wait(of *workerTurns, pod types.NamespacedName, now time.Time) time.Duration {
	here := of.waiting.Ahead(pod) + 1
	all := here
	for _, other := range p.workers {
		if other != of {
			all += min(other.waiting.Len(), here)
		}
	}
	wait := max((float64(here)-of.limiter.TokensAt(now))/writesOfOne, (float64(all)-p.all.TokensAt(now))/writesPerSecond)
	return max(time.Duration(wait*float64(time.Second)), time.Millisecond)
}
