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

// readMemory bounds what the Jobs take in memory that are read whole at the same time: wholeBytes
// together, and wholeOfNamespace those of one namespace. A larger Job has a share while no other
// has. Small Jobs need no share: no more of them are read than are reconciled at once.
//
// Jobs that find no memory wait for a share: those of a namespace in the order of their coming, and
// the namespaces in turn. The Job whose turn it is is woken. While Jobs wait, one that has a share
// doesn't keep it for longer than yieldsAfter for the answers of workers.
type readMemory struct {
	clock clock.WithDelayedExecution
	// wake has a Job reconciled.
	wake func(...types.NamespacedName)

	mu         sync.Mutex
	held       int64
	namespaces map[string]int64
	// waiting has the Jobs that wait, and queues those of each namespace, in order.
	waiting map[types.NamespacedName]*waiter
	queues  []*namespaceQueue
	// calls are the requests to workers of Jobs that may have a share.
	calls map[*workerCall]struct{}
}

// waiter is a Job that found no memory for its weight, last at some time.
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
	// waitsFor is how long memory is kept for a Job that doesn't ask again.
	waitsFor = 2 * awaitAtMost
	// yieldsAfter is how long a Job has for its requests to workers if others wait for its share.
	yieldsAfter = 3 * time.Second
)

// errNoMemory: the Jobs that are being read whole leave no memory for this one.
var errNoMemory = errors.New("as many Jobs as may be are being read from the hub")

func newReadMemory(clock clock.WithDelayedExecution) *readMemory {
	return &readMemory{
		clock: clock, wake: func(...types.NamespacedName) {}, namespaces: map[string]int64{},
		waiting: map[types.NamespacedName]*waiter{}, calls: map[*workerCall]struct{}{},
	}
}

// readShare is what one turn of a Job holds of the memory.
type readShare struct {
	*readMemory
	key types.NamespacedName
	// isOnce: nobody asks again, so the Job doesn't wait.
	isOnce bool
	bytes  int64
	// inVain: it has found no memory, and asks again in its next turn.
	inVain bool
}

// reserve takes what a Job needs; false: there is no memory for it.
func (s *readShare) reserve(weight int64) bool {
	if weight <= packed.SmallWeight {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserveLocked(weight)
}

// reserveMore takes some bytes beside what the turn holds; giveBack gives them back.
func (s *readShare) reserveMore(bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserveLocked(s.bytes + bytes)
}

func (s *readShare) giveBack(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(-bytes)
	s.wakeLocked()
}

func (s *readShare) reserveLocked(weight int64) bool {
	had := s.bytes
	if weight <= had {
		return true
	}
	s.addLocked(-had)
	if !s.isOnce {
		s.awaitLocked(weight)
	}
	if !s.isNextLocked() || !s.fits(s.key.Namespace, weight) || s.held > 0 && s.held+weight > wholeBytes {
		s.addLocked(had)
		if s.inVain = !s.isOnce; s.inVain {
			s.hurryLocked()
		}
		return false
	}
	s.leaveLocked(s.key)
	s.addLocked(weight)
	s.wakeLocked()
	return true
}

// correct takes what a Job has needed, if that is more than was known before.
func (s *readShare) correct(weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if weight > packed.SmallWeight && weight > s.bytes {
		s.addLocked(weight - s.bytes)
	}
}

func (s *readShare) addLocked(bytes int64) {
	s.bytes += bytes
	s.held += bytes
	if s.namespaces[s.key.Namespace] += bytes; s.namespaces[s.key.Namespace] == 0 {
		delete(s.namespaces, s.key.Namespace)
	}
}

// release gives back what the turn holds. A Job that hasn't asked in vain waits no more.
func (s *readShare) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, waits := s.bytes > 0, s.waiting[s.key] != nil
	if held {
		s.addLocked(-s.bytes)
		s.passTurnLocked(s.key.Namespace)
	}
	if !s.inVain {
		s.leaveLocked(s.key)
	}
	if held || waits && !s.inVain {
		s.wakeLocked()
	}
	s.inVain = false
}

// fits reports whether the Jobs of a namespace leave room for one more of it.
func (m *readMemory) fits(namespace string, weight int64) bool {
	held := m.namespaces[namespace]
	return held == 0 || held+weight <= wholeOfNamespace
}

// isNextLocked reports whether no other Job goes before this one.
func (s *readShare) isNextLocked() bool {
	first := s.firstLocked()
	return first == nil && s.isOnce || first != nil && first.key == s.key
}

// firstLocked is the Job whose turn it is; nil: none waits for others than its own namespace's. It
// drops those before it that haven't asked for long, however many, in one go.
func (m *readMemory) firstLocked() (first *waiter) {
	now, gone := m.clock.Now(), false
	for _, q := range m.queues {
		for len(q.jobs) > 0 && now.Sub(q.jobs[0].at) > waitsFor {
			delete(m.waiting, q.jobs[0].key)
			q.jobs = q.jobs[1:]
		}
		gone = gone || len(q.jobs) == 0
		if len(q.jobs) > 0 && m.fits(q.namespace, q.jobs[0].weight) {
			first = q.jobs[0]
			break
		}
	}
	if gone {
		m.queues = slices.DeleteFunc(m.queues, func(q *namespaceQueue) bool { return len(q.jobs) == 0 })
	}
	return first
}

func (m *readMemory) queueOf(namespace string) int {
	return slices.IndexFunc(m.queues, func(q *namespaceQueue) bool { return q.namespace == namespace })
}

// awaitLocked has the Job wait, behind those of its namespace that came before.
func (s *readShare) awaitLocked(weight int64) {
	now := s.clock.Now()
	if w := s.waiting[s.key]; w != nil {
		w.weight, w.at = weight, now
		return
	}
	w := &waiter{s.key, weight, now}
	s.waiting[s.key] = w
	i := s.queueOf(s.key.Namespace)
	if i < 0 {
		i, s.queues = len(s.queues), append(s.queues, &namespaceQueue{namespace: s.key.Namespace})
	}
	s.queues[i].jobs = append(s.queues[i].jobs, w)
}

// leaveLocked has a Job wait no more.
func (m *readMemory) leaveLocked(key types.NamespacedName) {
	w := m.waiting[key]
	if w == nil {
		return
	}
	delete(m.waiting, key)
	i := m.queueOf(key.Namespace)
	q := m.queues[i]
	at := slices.Index(q.jobs, w) // nearly always the first
	if q.jobs = slices.Delete(q.jobs, at, at+1); len(q.jobs) == 0 {
		m.queues = slices.Delete(m.queues, i, i+1)
	}
}

// passTurnLocked lets the other namespaces go first.
func (m *readMemory) passTurnLocked(namespace string) {
	if i := m.queueOf(namespace); i >= 0 {
		q := m.queues[i]
		m.queues = append(slices.Delete(m.queues, i, i+1), q)
	}
}

// wakeLocked has the Job reconciled whose turn it is. It finds out itself whether there is room.
func (m *readMemory) wakeLocked() {
	if first := m.firstLocked(); first != nil {
		m.wake(first.key)
	}
}

// workerCall is a request to a worker, or several, while its Job may have a share.
type workerCall struct {
	of     *readShare
	began  time.Time
	cancel context.CancelCauseFunc
	// isHurried: its end is set.
	isHurried bool
}

// atWorker makes requests to a worker. If others wait for the share that the Job has, the context
// ends after a while: no worker is to hold up the Jobs of others by the time that it takes to
// answer. Then the error is errNoMemory, and the next turn sees what the worker has done.
func (s *readShare) atWorker(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.began(&workerCall{of: s, began: s.clock.Now(), cancel: cancel})()
	err := request(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errNoMemory) {
		return errNoMemory
	}
	return err
}

// began counts a call until ended is called.
func (m *readMemory) began(c *workerCall) (ended func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[c] = struct{}{}
	if len(m.waiting) > 0 {
		m.hurryLocked()
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.calls, c)
	}
}

// hurryLocked sets the end of the requests to workers by Jobs that have a share.
func (m *readMemory) hurryLocked() {
	for c := range m.calls {
		if c.of.bytes > 0 && !c.isHurried {
			c.isHurried = true
			m.clock.AfterFunc(c.began.Add(yieldsAfter).Sub(m.clock.Now()), func() { c.cancel(errNoMemory) })
		}
	}
}
