package podtimes

import (
	"container/list"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/shares"
)

const (
	// maxGone is of how many Jobs without Pods the sums are kept, and keepGone for how long if they
	// are no mirrors any more: until then the hub has written their account.
	maxGone  = 10_000
	keepGone = 2 * time.Minute
	// maxPods is how many Pods are kept: more than the watch lets in.
	maxPods = 200_000
	// maxName is how many bytes the name of a Job may have.
	maxName = validation.DNS1123SubdomainMaxLength
	// maxTime bounds a Pod's time, which its worker decides.
	maxTime = 10 * 365 * 24 * time.Hour
)

// Store has the times of one worker's Pods. Its methods may be called from any goroutine.
type Store struct {
	origin v1alpha1.Origin
	now    func() time.Time
	ahead  func() time.Duration
	isSeen func(types.NamespacedName) bool

	mu   sync.Mutex
	pods map[types.UID]*pod
	jobs map[objectnames.ID]*jobTimes
	// gone are the Jobs that have no Pods any more, by goneAt, and goneOf counts them by namespace.
	gone   list.List // of *jobTimes
	goneOf map[string]int
	heard  heard
	// view is the number of what is seen since all Pods were listed; zero: they haven't been.
	view   int64
	listed time.Time
	// askedLast is the namespace of which Unseen has named the last Job.
	askedLast string
	// walkedUntil is until when as many Pods have been looked at by TimesAt as may be.
	walkedUntil time.Time
}

// views are how many there were in this process.
var views atomic.Int64

// pod is what is known of one Pod with a node.
type pod struct {
	job *jobTimes
	// bound is when it got its node, by its own times: the worker's clock, in whole seconds. Start is
	// the same by the hub's clock, at the latest.
	bound, start time.Time
	// created is when its API server did, in seconds since 1970.
	created int64
	// ran is for how long, when it has ended.
	ran              time.Duration
	ended, succeeded bool
	// previous and next Pod of the Job.
	previous, next *pod
}

// jobTimes has the sums of one Job's Pods, and the Pods that are there.
type jobTimes struct {
	id    objectnames.ID
	times usage.Times
	// name, by its Pods. isMirror: they say that it's a mirror of this origin, and askedFor is when
	// Unseen last named it.
	name     string
	isMirror bool
	askedFor time.Time
	// gone is its place among those without Pods; nil: it has some. GoneAt is when the last one went,
	// or the mirror was seen after that.
	gone   *list.Element
	goneAt time.Time
	// starts is the sum of when the Pods that run got their nodes, by their own times, in milliseconds
	// since 1970.
	starts int64
	first  *pod
}

// New makes the store of a worker without Pods. Now is the hub's clock, and ahead is how far it's
// ahead of the worker's. IsSeen reports whether a mirror is seen in the worker.
func New(origin v1alpha1.Origin, now func() time.Time, ahead func() time.Duration, isSeen func(types.NamespacedName) bool) *Store {
	s := &Store{origin: origin, now: now, ahead: ahead, isSeen: isSeen}
	s.Forget()
	return s
}

// Times are those of the Pods of a Job in the worker.
func (s *Store) Times(job objectnames.ID) usage.Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := usage.Times{}
	if j := s.jobs[job]; j != nil {
		t = j.times
		t.Since = mean(j.starts, t.Running)
	}
	t.Ahead, t.View = s.ahead(), s.view
	return t
}

// Set adds or updates a Pod.
func (s *Store) Set(object *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[object.UID]
	if p == nil {
		if p = s.add(object); p == nil {
			return
		}
	}
	s.read(p, object)
}

// read updates a Pod.
func (s *Store) read(p *pod, object *corev1.Pod) {
	if p.ended {
		return
	}
	p.bind(s.sane(Start(object)))
	if Over(object) {
		p.succeeded = object.Status.Phase == corev1.PodSucceeded
		p.end(End(object).Sub(p.bound))
	}
}

// Delete removes a Pod that the watch says is deleted, as it was last. One whose end wasn't told
// ran until now, or until it had to be gone.
func (s *Store) Delete(object *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[object.UID]
	if p == nil {
		return
	}
	s.read(p, object)
	now := s.now()
	until := now
	if at := object.DeletionTimestamp; at != nil {
		until = earlier(s.hubs(at.Time), now)
	}
	s.remove(object.UID, p, s.heard.last(now), until)
}

// Remove removes a Pod that was missing when all were listed. Of one whose end wasn't told, it's
// only known that it ran when the watch last told something.
func (s *Store) Remove(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[uid]; p != nil {
		s.remove(uid, p, s.heard.at, s.now())
	}
}

// remove removes a Pod. One whose end wasn't told is known to have run until some time, and may
// have for longer, until another one. Both are by the hub's clock.
func (s *Store) remove(uid types.UID, p *pod, known, until time.Time) {
	if !p.ended {
		known = later(earlier(known, until), p.start)
		p.end(known.Sub(p.start))
		p.job.times.Unknown += max(until.Sub(known), 0)
	}
	delete(s.pods, uid)
	s.unlink(p)
}

const (
	// unseenAtOnce is how many Jobs Unseen names at a time, of which each namespace has a share, and
	// unseenAgain after how long one again: a worker's tenant may make Pods that name any Job.
	unseenAtOnce = 20
	unseenAgain  = 10 * time.Minute
	// maxUnseenLooks bounds how many Jobs Unseen looks at, of very many others each time.
	maxUnseenLooks = 20_000
)

// Unseen are some of the mirrors of this origin, by what their Pods say, that aren't seen.
func (s *Store) Unseen() (unseen []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, of, looks := s.now(), map[string][]*jobTimes{}, 0
	for _, j := range s.jobs { // in any order
		if looks++; looks > maxUnseenLooks {
			break
		}
		if j.isMirror && j.first != nil && now.Sub(j.askedFor) >= unseenAgain && !s.isSeen(j.key()) {
			of[j.id.Namespace] = append(of[j.id.Namespace], j)
		}
	}
	for _, jobs := range of {
		slices.SortFunc(jobs, func(a, b *jobTimes) int { return a.askedFor.Compare(b.askedFor) })
	}
	of, s.askedLast = shares.Of(of, s.askedLast, unseenAtOnce)
	for _, jobs := range of {
		for _, j := range jobs {
			j.askedFor = now
			unseen = append(unseen, j.key())
		}
	}
	return unseen
}

// Keys are the Pods that are there.
func (s *Store) Keys() []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.pods))
}

// Heard says that the watch has told something, if only that nothing has changed.
func (s *Store) Heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard.tell(s.now())
}

// Listed says that all Pods have been listed. What was seen before isn't all.
func (s *Store) Listed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == 0 {
		s.view, s.listed = views.Add(1), s.now()
	}
}

// Forget drops all Pods, before a new watch lists them again.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods, s.jobs, s.goneOf = map[types.UID]*pod{}, map[objectnames.ID]*jobTimes{}, map[string]int{}
	s.gone.Init()
	s.view, s.heard = 0, heard{}
}

// add adds a Pod of a Job; nil: no Job controls it, it has no node, or it isn't to be kept.
func (s *Store) add(object *corev1.Pod) *pod {
	owner, bound := metav1.GetControllerOf(object), Start(object)
	if owner == nil || owner.Kind != "Job" || bound.IsZero() || len(owner.UID) > objectnames.MaxUID || len(object.UID) > objectnames.MaxUID || len(s.pods) >= maxPods {
		return nil
	}
	id := objectnames.ID{Namespace: object.Namespace, UID: owner.UID}
	j := s.jobs[id]
	if j == nil {
		id.Namespace = unique.Make(id.Namespace).Value()
		j = &jobTimes{id: id}
		if len(owner.Name) <= maxName {
			j.name = strings.Clone(owner.Name)
			j.isMirror = mirror.IsMarkOf(mirror.MarkIn(object.Labels[v1alpha1.LabelMirrorID]), s.origin, j.key())
		}
		s.jobs[id] = j
	}
	s.back(j)
	p := &pod{job: j, next: j.first, bound: s.sane(bound), created: object.CreationTimestamp.Unix()}
	p.start = earlier(s.hubs(p.bound), s.now())
	if s.heard.at.Sub(p.start) > catchUp {
		p.start = s.heard.at // the Pod had no node then: the worker's clock has just been set
	}
	if p.next != nil {
		p.next.previous = p
	}
	j.first, j.times.Newest = p, later(j.times.Newest, p.bound)
	j.times.Running++
	j.starts += p.bound.UnixMilli()
	s.pods[object.UID] = p
	return p
}

// hubs is by the hub's clock what the worker wrote in whole seconds, at the latest.
func (s *Store) hubs(at time.Time) time.Time { return at.Add(s.ahead() + time.Second) }

// sane is a time that isn't too far from now, both by the worker's clock.
func (s *Store) sane(at time.Time) time.Time {
	there := s.now().Add(-s.ahead())
	return earlier(later(at, there.Add(-maxTime)), there.Add(maxTime))
}

// bind corrects when the Pod got its node: a scheduler that lost its API server may write that
// twice.
func (p *pod) bind(at time.Time) {
	p.job.starts += at.UnixMilli() - p.bound.UnixMilli()
	p.bound, p.job.times.Newest = at, later(p.job.times.Newest, at)
}

// unlink takes a Pod that is gone out of its Job.
func (s *Store) unlink(p *pod) {
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
	s.leave(j)
}

// key is the Job's name.
func (j *jobTimes) key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.id.Namespace, Name: j.name}
}

// end counts a Pod as ended.
func (p *pod) end(ran time.Duration) {
	p.ended, p.ran = true, min(max(ran, 0), maxTime)
	t := &p.job.times
	t.Running--
	p.job.starts -= p.bound.UnixMilli()
	t.Count++
	t.Ended += p.ran
	t.Succeeded += p.success()
}

// success is for how long the Pod ran if it succeeded.
func (p *pod) success() time.Duration {
	if p.succeeded {
		return p.ran
	}
	return 0
}

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
