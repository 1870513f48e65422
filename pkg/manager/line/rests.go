package line

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/turns"
)

// rest is the time in which no walk asks the Jobs of a namespace that decide for themselves, as the
// last one took long for that. Those that a walk would have asked are asked one by one, each after
// a rest of its own.
type rest struct {
	until   time.Time
	waiting *turns.Queue
	// asked is the one that is enqueued; nil: none is.
	asked *types.NamespacedName
}

const (
	// restTimes is how many times as long a namespace rests as a decision took: workers may change
	// again and again, and a tenth of a core at most goes to its Jobs. maxRest bounds that, as a
	// decision may have waited for the hub.
	restTimes = 9
	maxRest   = 10 * time.Second
)

// heedsRest reports whether a rest of its namespace is for the Job: not for a divided one, unless
// it's heavy. No room is kept for it while it isn't asked: others would have all that comes free.
func (w *entry) heedsRest() bool {
	return !w.isJudgedInWalks() && !w.Exempt && (!w.Divisible || w.heavy)
}

// restLocked has a namespace rest if one of its Jobs has decided for itself, and waits.
func (l *Line) restLocked(w *entry) {
	if l.waiters[w.Key] != w || !w.heedsRest() || w.began.IsZero() {
		return
	}
	now, namespace := l.clock.Now(), w.Key.Namespace
	wait := min(restTimes*now.Sub(w.began), maxRest)
	if wait <= 0 {
		return
	}
	if l.rests[namespace] == nil {
		l.rests[namespace] = &rest{waiting: turns.NewQueue()}
	}
	l.rests[namespace].until = now.Add(wait)
	l.clock.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.endRestLocked(namespace)
	})
}

// endRestLocked has the next Job of a namespace asked if its rest is over.
func (l *Line) endRestLocked(namespace string) {
	r := l.rests[namespace]
	if r == nil || r.asked != nil || l.clock.Now().Before(r.until) {
		return
	}
	next := r.waiting.Next(1)
	if len(next) == 0 {
		delete(l.rests, namespace)
		return
	}
	r.asked = &next[0]
	if w := l.waiters[next[0]]; w != nil {
		w.isNext = true
	}
	l.jobs.Enqueue(next[0])
}

// settleRestLocked goes on with the next Job of a namespace if this one was asked.
func (l *Line) settleRestLocked(key types.NamespacedName) {
	if r := l.rests[key.Namespace]; r != nil && r.asked != nil && *r.asked == key {
		r.asked = nil
		l.endRestLocked(key.Namespace)
	}
}

// putOff reports whether a Job isn't asked yet, as its namespace rests.
func (w *walker) putOff(entry *entry) bool {
	r := w.rests[entry.Key.Namespace]
	if r == nil || !entry.heedsRest() {
		return false
	}
	r.waiting.Add(entry.Key)
	return true
}
