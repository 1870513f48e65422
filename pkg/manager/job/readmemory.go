package job

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/packed"
)

// places bounds what the Jobs take in memory that are read whole at the same time: wholeBytes
// together, and wholeOfNamespace those of one namespace. A larger Job has a place while no other
// has. Small Jobs need no place: no more of them are read than are reconciled at once.
//
// Jobs that find no place wait for one: those of a namespace in the order of their coming, and the
// namespaces in turn. The Job whose turn it is is woken. While Jobs wait, one that has a place
// doesn't keep it for longer than yieldsAfter for the answers of workers.
type places struct {
	clock clock.WithDelayedExecution
	// wake has a Job reconciled.
	wake func(...types.NamespacedName)

	mu         sync.Mutex
	held       int64
	namespaces map[string]int64
	// waiting has the Jobs that wait, and queues those of each namespace, in order.
	waiting map[types.NamespacedName]*waiter
	queues  []*namespaceQueue
	// calls are the requests to workers of Jobs that may have a place.
	calls map[*workerCall]struct{}
}

// waiter is a Job that found no place for its weight, last at some time.
type waiter struct {
	key    types.NamespacedName
	weight int64
	at     time.Time
}

// namespaceQueue has the Jobs of a namespace that wait, in order; never none.
type namespaceQueue struct {
	namespace string
	jobs      []*waiter
}

const (
	wholeBytes       = 64 << 20
	wholeOfNamespace = 32 << 20
	// waitsFor is how long a place is kept for a Job that doesn't ask again.
	waitsFor = 2 * awaitAtMost
	// yieldsAfter is how long a Job has for its requests to workers if others wait for its place.
	yieldsAfter = 3 * time.Second
)

// errNoPlace: the Jobs that are being read whole leave no memory for this one.
var errNoPlace = errors.New("as many Jobs as may be are being read from the hub")

func newPlaces(clock clock.WithDelayedExecution) *places {
	return &places{
		clock: clock, wake: func(...types.NamespacedName) {}, namespaces: map[string]int64{},
		waiting: map[types.NamespacedName]*waiter{}, calls: map[*workerCall]struct{}{},
	}
}

// place is what one turn of a Job holds.
type place struct {
	*places
	key types.NamespacedName
	// isOnce: nobody asks again, so the Job doesn't wait.
	isOnce bool
	bytes  int64
	// inVain: it has found no place, and asks again in its next turn.
	inVain bool
}

// reserve takes what a Job needs; false: there is no place for it.
func (p *place) reserve(weight int64) bool {
	if weight <= packed.SmallWeight {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserveLocked(weight)
}

// reserveMore takes some bytes beside what the turn holds; giveBack gives them back.
func (p *place) reserveMore(bytes int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserveLocked(p.bytes + bytes)
}

func (p *place) giveBack(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(-bytes)
	p.wakeLocked()
}

func (p *place) reserveLocked(weight int64) bool {
	had := p.bytes
	if weight <= had {
		return true
	}
	p.addLocked(-had)
	if !p.isOnce {
		p.awaitLocked(weight)
	}
	if !p.isNextLocked() || !p.fits(p.key.Namespace, weight) || p.held > 0 && p.held+weight > wholeBytes {
		p.addLocked(had)
		if p.inVain = !p.isOnce; p.inVain {
			p.hurryLocked()
		}
		return false
	}
	p.leaveLocked(p.key)
	p.addLocked(weight)
	p.wakeLocked()
	return true
}

// correct takes what a Job has needed, if that is more than was known before.
func (p *place) correct(weight int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if weight > packed.SmallWeight && weight > p.bytes {
		p.addLocked(weight - p.bytes)
	}
}

func (p *place) addLocked(bytes int64) {
	p.bytes += bytes
	p.held += bytes
	if p.namespaces[p.key.Namespace] += bytes; p.namespaces[p.key.Namespace] == 0 {
		delete(p.namespaces, p.key.Namespace)
	}
}

// release gives back what the turn holds. A Job that hasn't asked in vain waits no more.
func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, waits := p.bytes > 0, p.waiting[p.key] != nil
	if held {
		p.addLocked(-p.bytes)
		p.passTurnLocked(p.key.Namespace)
	}
	if !p.inVain {
		p.leaveLocked(p.key)
	}
	if held || waits && !p.inVain {
		p.wakeLocked()
	}
	p.inVain = false
}

// fits reports whether the Jobs of a namespace leave room for one more of it.
func (p *places) fits(namespace string, weight int64) bool {
	held := p.namespaces[namespace]
	return held == 0 || held+weight <= wholeOfNamespace
}

// isNextLocked reports whether no other Job goes before this one.
func (p *place) isNextLocked() bool {
	first := p.firstLocked()
	return first == nil && p.isOnce || first != nil && first.key == p.key
}

// firstLocked is the Job whose turn it is; nil: none waits for others than its own namespace's. It
// drops those before it that haven't asked for long, however many, in one go.
func (p *places) firstLocked() (first *waiter) {
	now, gone := p.clock.Now(), false
	for _, q := range p.queues {
		for len(q.jobs) > 0 && now.Sub(q.jobs[0].at) > waitsFor {
			delete(p.waiting, q.jobs[0].key)
			q.jobs = q.jobs[1:]
		}
		gone = gone || len(q.jobs) == 0
		if len(q.jobs) > 0 && p.fits(q.namespace, q.jobs[0].weight) {
			first = q.jobs[0]
			break
		}
	}
	if gone {
		p.queues = slices.DeleteFunc(p.queues, func(q *namespaceQueue) bool { return len(q.jobs) == 0 })
	}
	return first
}

func (p *places) queueOf(namespace string) int {
	return slices.IndexFunc(p.queues, func(q *namespaceQueue) bool { return q.namespace == namespace })
}

// awaitLocked has the Job wait, behind those of its namespace that came before.
func (p *place) awaitLocked(weight int64) {
	now := p.clock.Now()
	if w := p.waiting[p.key]; w != nil {
		w.weight, w.at = weight, now
		return
	}
	w := &waiter{p.key, weight, now}
	p.waiting[p.key] = w
	i := p.queueOf(p.key.Namespace)
	if i < 0 {
		i, p.queues = len(p.queues), append(p.queues, &namespaceQueue{namespace: p.key.Namespace})
	}
	p.queues[i].jobs = append(p.queues[i].jobs, w)
}

// leaveLocked has a Job wait no more.
func (p *places) leaveLocked(key types.NamespacedName) {
	w := p.waiting[key]
	if w == nil {
		return
	}
	delete(p.waiting, key)
	i := p.queueOf(key.Namespace)
	q := p.queues[i]
	at := slices.Index(q.jobs, w) // nearly always the first
	if q.jobs = slices.Delete(q.jobs, at, at+1); len(q.jobs) == 0 {
		p.queues = slices.Delete(p.queues, i, i+1)
	}
}

// passTurnLocked lets the other namespaces go first.
func (p *places) passTurnLocked(namespace string) {
	if i := p.queueOf(namespace); i >= 0 {
		q := p.queues[i]
		p.queues = append(slices.Delete(p.queues, i, i+1), q)
	}
}

// wakeLocked has the Job reconciled whose turn it is. It finds out itself whether there is room.
func (p *places) wakeLocked() {
	if first := p.firstLocked(); first != nil {
		p.wake(first.key)
	}
}

// workerCall is a request to a worker, or several, while its Job may have a place.
type workerCall struct {
	of     *place
	began  time.Time
	cancel context.CancelCauseFunc
	// isHurried: its end is set.
	isHurried bool
}

// atWorker makes requests to a worker. If others wait for the place that the Job has, the context
// ends after a while: no worker is to hold up the Jobs of others by the time that it takes to
// answer. Then the error is errNoPlace, and the next turn sees what the worker has done.
func (p *place) atWorker(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer p.began(&workerCall{of: p, began: p.clock.Now(), cancel: cancel})()
	err := request(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errNoPlace) {
		return errNoPlace
	}
	return err
}

// began counts a call until ended is called.
func (p *places) began(c *workerCall) (ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[c] = struct{}{}
	if len(p.waiting) > 0 {
		p.hurryLocked()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, c)
	}
}

// hurryLocked sets the end of the requests to workers by Jobs that have a place.
func (p *places) hurryLocked() {
	for c := range p.calls {
		if c.of.bytes > 0 && !c.isHurried {
			c.isHurried = true
			p.clock.AfterFunc(c.began.Add(yieldsAfter).Sub(p.clock.Now()), func() { c.cancel(errNoPlace) })
		}
	}
}
