package podtimes

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/usage"
)

const (
	// maxGone is of how many Jobs without Pods the sums are kept.
	maxGone = 10_000
	// settleAfter is how long one watch may be behind the other while both tell something. Of one that tells
	// nothing, settleAtMost is: within that time, an API server ends it, and it begins anew.
	settleAfter  = 2 * time.Minute
	settleAtMost = 15 * time.Minute
	// maxPods is of how many Pods something is kept: of more than the watches let in. Those that departed
	// are settled early for it.
	maxPods = 200_000
	// maxUID is how many bytes a UID may have; others are no API server's.
	maxUID = 64
	// maxTime bounds a Pod's time, which its worker decides.
	maxTime = 10 * 365 * 24 * time.Hour
)

// Store has the times of one worker's Pods. Its methods may be called from any goroutine.
type Store struct {
	now   func() time.Time
	ahead func() time.Duration

	mu   sync.Mutex
	pods map[types.UID]*pod
	jobs map[types.UID]*job
	// unsettled are Pods of which neither watch knows any more, the oldest first, each once. Some may have
	// come back.
	unsettled []departure
	// heard is when the watch of Pods that run last told something, endHeard when that of Pods that ended did.
	heard, endHeard time.Time
	// gone are the Jobs that have no Pods any more, the oldest first.
	gone []types.UID
	// view is the number of what is seen since all Pods were listed; zero: they haven't been.
	view int64
}

// views are how many there were in this process.
var views atomic.Int64

// departure is when a Pod was last seen.
type departure struct {
	uid types.UID
	at  time.Time
}

// pod is what is known of one Pod with a node.
type pod struct {
	job *job
	// start by the worker's clock, and leaves: when it is to be gone; zero: it isn't.
	start, leaves time.Time
	// until is when it was seen to run no more, by the worker's clock, and ran for how long it ran, when it
	// has ended.
	until     time.Time
	ran       time.Duration
	succeeded bool
	phase     phase
	// running and listed: the watch of Pods that run has it, that of Pods that ended does.
	running, listed bool
	// departed: neither has it. unsettled: it's among those.
	departed, unsettled bool
	// previous and next Pod of the Job.
	previous, next *pod
}

// phase of a Pod's account.
type phase int

const (
	fresh phase = iota
	open        // it counts as running
	ended
)

// job is the sums of one Job's Pods, and those of them that aren't settled.
type job struct {
	uid   types.UID
	times usage.Times
	// starts is the sum of when the Pods that run got their nodes, in milliseconds since 1970. Of those that
	// departed, ends has the sum of when they were seen to.
	starts, ends int64
	newest       time.Time
	departed     int64
	first        *pod
}

// New makes the store of a worker without Pods. Now is the hub's clock, and ahead is how far it's ahead of the
// worker's.
func New(now func() time.Time, ahead func() time.Duration) *Store {
	return &Store{now: now, ahead: ahead, pods: map[types.UID]*pod{}, jobs: map[types.UID]*job{}}
}

// Times are those of a Job's Pods, by the UID of the Job in the worker.
func (s *Store) Times(uid types.UID) usage.Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	t := usage.Times{Ahead: s.ahead(), View: s.view}
	j := s.jobs[uid]
	if j == nil {
		return t
	}
	t.Ended, t.Count, t.Succeeded, t.Running, t.Newest = j.times.Ended, j.times.Count, j.times.Succeeded, j.times.Running, j.newest
	if t.Running > 0 {
		// A Pod that departed counts for as long as it was seen to run, as if it had started later.
		shift := j.departed*s.there().UnixMilli() - j.ends
		t.Since = mean(j.starts+shift, t.Running)
	}
	return t
}

// TimesThen are the times that Times had then, of the Pods that are still there.
func (s *Store) TimesThen(uid types.UID, then usage.Then) usage.Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[uid]
	if j == nil {
		return usage.Times{View: s.view}
	}
	t := usage.Times{Ended: j.times.Ended, Succeeded: j.times.Succeeded, Count: j.times.Count, View: s.view}
	var starts int64
	for p := j.first; p != nil; p = p.next {
		isNew := p.start.After(then.Newest)
		switch {
		case p.phase == ended && (isNew || then.At.Before(p.start.Add(p.ran))):
			t.Count--
			t.Ended -= p.ran
			if p.succeeded {
				t.Succeeded -= p.ran
			}
		case p.phase != open:
			continue
		}
		if !isNew {
			t.Running++
			starts += earlier(p.start, then.At).UnixMilli()
		}
	}
	if t.Running > 0 {
		t.Since = mean(starts, t.Running)
	}
	return t
}

// mean of some times, of which the sum is in milliseconds since 1970.
func mean(sum, count int64) time.Time {
	return time.UnixMilli(sum / count).Add(time.Duration(sum%count) * time.Millisecond / time.Duration(count))
}

// Running are the Pods that run, for those who watch them.
func (s *Store) Running() Running { return Running{s} }

// Ended are the Pods that have ended, for those who watch them.
func (s *Store) Ended() Ended { return Ended{s} }

// Running are the Pods of a Store that run.
type Running struct{ store *Store }

// Ended are the Pods of a Store that have ended.
type Ended struct{ store *Store }

// Set adds or updates a Pod that runs.
func (r Running) Set(object *corev1.Pod) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	start := Start(object)
	p := s.pods[object.UID]
	if p == nil {
		if start.IsZero() {
			return
		}
		if p = s.add(object, start); p == nil {
			return
		}
		p.open()
	}
	p.running = true
	p.comeBack()
	if object.DeletionTimestamp != nil {
		p.leaves = object.DeletionTimestamp.Time
	}
}

// Remove says that a Pod runs no more.
func (r Running) Remove(uid types.UID) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	if p == nil || !p.running {
		return
	}
	p.running = false
	if p.phase != ended {
		p.until = s.there()
		if !p.leaves.IsZero() {
			p.until = earlier(p.until, p.leaves)
			p.end(p.until.Sub(p.start), false)
		}
	}
	s.depart(uid, p)
}

// Heard says that the watch has told something, if only that nothing has changed.
func (r Running) Heard() { r.store.hear(&r.store.heard) }

// Keys are the Pods that run.
func (r Running) Keys() []types.UID {
	return r.store.keys(func(p *pod) bool { return p.running })
}

// Set adds a Pod that has ended.
func (e Ended) Set(object *corev1.Pod) {
	s := e.store
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[object.UID]
	start := Start(object)
	switch {
	case p != nil && p.listed:
		return
	case p == nil && start.IsZero():
		return // it never had a node
	case p == nil:
		if p = s.add(object, start); p == nil {
			return
		}
	}
	p.listed = true
	p.comeBack()
	p.end(End(object).Sub(p.start), object.Status.Phase == corev1.PodSucceeded)
}

// Remove removes one that is gone.
func (e Ended) Remove(uid types.UID) {
	s := e.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[uid]; p != nil {
		p.listed = false
		s.depart(uid, p)
	}
}

// Heard says that the watch has told something, if only that nothing has changed.
func (e Ended) Heard() { e.store.hear(&e.store.endHeard) }

// Keys are the Pods that have ended.
func (e Ended) Keys() []types.UID {
	return e.store.keys(func(p *pod) bool { return p.listed })
}

// Listed says that both watches have listed all Pods. What was seen before isn't all.
func (s *Store) Listed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == 0 {
		s.view = views.Add(1)
	}
}

// Forget drops all Pods, before new watches list them again.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods, s.jobs, s.unsettled, s.gone = map[types.UID]*pod{}, map[types.UID]*job{}, nil, nil
	s.view = 0
}

func (s *Store) hear(last *time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*last = s.now()
}

func (s *Store) keys(is func(*pod) bool) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.pods)), func(uid types.UID) bool { return !is(s.pods[uid]) })
}

// add adds a Pod of a Job; nil: no Job controls it, or it isn't to be kept.
func (s *Store) add(object *corev1.Pod, start time.Time) *pod {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Job" || len(owner.UID) > maxUID || len(object.UID) > maxUID || !s.hasRoom() {
		return nil
	}
	j := s.jobs[owner.UID]
	if j == nil {
		j = &job{uid: owner.UID}
		s.jobs[owner.UID] = j
	}
	there := s.there()
	p := &pod{job: j, start: earlier(later(start, there.Add(-maxTime)), there.Add(maxTime)), next: j.first}
	if p.next != nil {
		p.next.previous = p
	}
	j.first, j.newest = p, later(j.newest, p.start)
	s.pods[object.UID] = p
	return p
}

// there is the time by the worker's clock.
func (s *Store) there() time.Time { return s.now().Add(-s.ahead()) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hasRoom makes room for a Pod, and reports whether there is some.
func (s *Store) hasRoom() bool {
	for len(s.pods) >= maxPods && len(s.unsettled) > 0 {
		s.settleOldest()
	}
	return len(s.pods) < maxPods
}

// depart notes that a watch doesn't have a Pod any more. The other one may still show it: unless it did, or
// the Pod was being deleted, that is likely, and the Pod isn't counted as ended until it's settled. For how
// long it ran is a guess.
func (s *Store) depart(uid types.UID, p *pod) {
	if !p.running && !p.listed && !p.departed {
		p.departed = true
		if p.phase == open {
			p.job.departed++
			p.job.ends += p.until.UnixMilli()
		}
		if !p.unsettled {
			p.unsettled = true
			s.unsettled = append(s.unsettled, departure{uid, s.now()})
		}
	}
	s.settle()
}

// settle drops the Pods that are gone for good, and keeps their time: no watch that is behind may show one
// again, and have it count twice.
func (s *Store) settle() {
	now, heard := s.now(), earlier(s.heard, s.endHeard)
	for len(s.unsettled) > 0 {
		if at := s.unsettled[0].at; heard.Sub(at) < settleAfter && now.Sub(at) < settleAtMost {
			return
		}
		s.settleOldest()
	}
}

func (s *Store) settleOldest() {
	uid := s.unsettled[0].uid
	s.unsettled = s.unsettled[1:]
	p := s.pods[uid]
	p.unsettled = false
	if !p.departed {
		return
	}
	if p.phase != ended {
		p.end(p.until.Sub(p.start), false)
	}
	delete(s.pods, uid)
	s.settleJob(p)
}

func (s *Store) settleJob(p *pod) {
	j := p.job
	if p.previous != nil {
		p.previous.next = p.next
	} else {
		j.first = p.next
	}
	if p.next != nil {
		p.next.previous = p.previous
	}
	if j.first != nil {
		return
	}
	s.gone = append(s.gone, j.uid)
	for ; len(s.gone) > maxGone; s.gone = s.gone[1:] {
		if old := s.jobs[s.gone[0]]; old != nil && old.first == nil {
			delete(s.jobs, s.gone[0])
		}
	}
}

// comeBack counts a Pod as departed no more.
func (p *pod) comeBack() {
	if p.departed && p.phase == open {
		p.job.departed--
		p.job.ends -= p.until.UnixMilli()
	}
	p.departed = false
}

// open counts a Pod as running.
func (p *pod) open() {
	p.phase = open
	p.job.times.Running++
	p.job.starts += p.start.UnixMilli()
}

// end counts a Pod as ended, or corrects for how long it ran.
func (p *pod) end(ran time.Duration, succeeded bool) {
	t := &p.job.times
	switch p.phase {
	case open:
		if p.departed {
			p.job.departed--
			p.job.ends -= p.until.UnixMilli()
		}
		t.Running--
		p.job.starts -= p.start.UnixMilli()
	case ended:
		t.Count--
		t.Ended -= p.ran
		if p.succeeded {
			t.Succeeded -= p.ran
		}
	case fresh:
	}
	p.phase, p.ran, p.succeeded = ended, min(max(ran, 0), maxTime), succeeded
	t.Count++
	t.Ended += p.ran
	if succeeded {
		t.Succeeded += p.ran
	}
}
