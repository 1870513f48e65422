package report

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/usage/podtimes"
)

// maxPods is how many Pods a Store has: more than the watch lets in.
const maxPods = 200_000

// longPast is how long before the start of a process a Pod has ended that the process before has
// shown.
const longPast = 5 * time.Minute

// maxRefilled bounds what the reports that a Store got by Refill have beyond smallReport each: the
// feed doesn't count them.
const maxRefilled, smallReport = 8 << 20, 512

func beyondSmall(report string) int { return max(len(report)-smallReport, 0) }

// Pod is what is known of a worker's Pod.
type Pod struct {
	UID types.UID
	// Job is the name of the Job that controls it, and Mirror that Job's UID.
	Job    string
	Mirror types.UID
	// Digest of the report; empty: there is none, as the namespace wasn't shown when the Pod last
	// changed.
	Digest string
	Phase  corev1.PodPhase
	Ready  bool
	// Quiet: a shadow Pod that was just created shows all that there is to be told.
	Quiet bool
	// Deleting: it has been deleted, and has so many seconds to end.
	Deleting bool
	Grace    int64
	// Past: it has ended, and isn't to be shown again: its shadow Pod was removed since, or it had
	// ended long before this process knew of it.
	Past bool
	// Since is when it first differed from what was Shown; zero: it doesn't.
	Since time.Time

	report string
}

// Over reports whether the Pod has ended.
func (p *Pod) Over() bool { return Over(p.Phase) }

// Over reports whether a phase is final.
func Over(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// Report is the report of the Pod.
func (p *Pod) Report() (*corev1.Pod, error) { return unpack(p.report) }

// held is a Pod in a Store. The texts that it shares with the others of its Job are there once.
type held struct {
	name           string
	uid            types.UID
	job            *job
	digest, report string
	refilled       bool // the report was
	phase          corev1.PodPhase
	glance         glance
	deleting, past bool
	grace          int32
	since          int64 // nanoseconds since 1970; zero: it is as it was shown
}

type job struct {
	namespace, name string
	uid             types.UID
	pods            int
}

// Store has the reports of the Pods of one worker's Jobs. Its methods may be called from any
// goroutine. It is one of the feed's stores.
type Store struct {
	now     func() time.Time
	changed func(types.NamespacedName)
	known   atomic.Bool
	// began is when the Store was made. What ended long before was shown by another process.
	began time.Time

	mu    sync.Mutex
	names map[types.NamespacedName]*held
	uids  map[types.UID]*held
	jobs  map[types.UID]*job
	// refilled is what the reports that were have beyond smallReport each.
	refilled int
}

// NewStore makes a Store without Pods. Changed is called with the name of each Pod that changes. It
// must not block.
func NewStore(now func() time.Time, changed func(types.NamespacedName)) *Store {
	return &Store{
		now: now, changed: changed, began: now(),
		names: map[types.NamespacedName]*held{}, uids: map[types.UID]*held{}, jobs: map[types.UID]*job{},
	}
}

// Known reports whether all Pods have been listed: one that the Store doesn't have isn't there.
func (s *Store) Known() bool { return s.known.Load() }

// Know says whether they have, and returns whether that is new.
func (s *Store) Know(known bool) (isNew bool) { return s.known.Swap(known) != known }

// Get returns a Pod.
func (s *Store) Get(name types.NamespacedName) (*Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.names[name]
	if p == nil {
		return nil, false
	}
	pod := &Pod{
		UID: p.uid, Job: p.job.name, Mirror: p.job.uid, Digest: p.digest, Phase: p.phase, Ready: p.glance&isReady != 0, Quiet: p.glance&isQuiet != 0,
		Deleting: p.deleting, Past: p.past && Over(p.phase), Grace: int64(p.grace), report: p.report,
	}
	if p.since != 0 {
		pod.Since = time.Unix(0, p.since)
	}
	return pod, true
}

// Each calls do with each Pod, and doesn't hold up the Store's other users meanwhile.
func (s *Store) Each(do func(types.NamespacedName, *Pod)) {
	for _, name := range s.all() {
		if pod, there := s.Get(name); there {
			do(name, pod)
		}
	}
}

func (s *Store) all() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(make([]types.NamespacedName, 0, len(s.names)), maps.Keys(s.names))
}

// Shown says that the report with this digest was shown.
func (s *Store) Shown(name types.NamespacedName, uid types.UID, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.names[name]; p != nil && p.uid == uid && p.digest == digest {
		p.since = 0
	}
}

// Removed says that the shadow of a Pod is gone. One of a Pod that has ended was removed by
// somebody, and isn't made again.
func (s *Store) Removed(name types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.names[name]; p != nil && p.uid == uid && Over(p.phase) {
		p.past = true
	}
}

// Set implements the feed's store.
func (s *Store) Set(pod *corev1.Pod) {
	if name, changed, _ := s.update(pod, true); changed {
		s.changed(name)
	}
}

// Refill takes over the report of a Pod that is there and was read by itself. A worker may answer
// with another, or with a large one: if there's no room for that, it's shown when the Pod changes,
// and until then its phase and whether it's ready.
func (s *Store) Refill(pod *corev1.Pod) {
	for _, of := range []*corev1.Pod{pod, bare(pod)} {
		slim, hold := Slim(of, true)
		if !hold {
			return
		}
		if name, changed, full := s.update(slim, false); !full {
			if changed {
				s.changed(name)
			}
			return
		}
	}
}

// update takes over a Pod. Full: there's no room for its report.
func (s *Store) update(pod *corev1.Pod, adds bool) (name types.NamespacedName, changed, full bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Name == "" || pod.UID == "" {
		return name, false, false
	}
	digest, at, report, _ := cut(pod.Annotations[annotationReport])
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.uids[pod.UID]
	if p == nil {
		if !adds || len(s.uids) >= maxPods {
			return name, false, false
		}
		p = s.add(pod, owner)
	}
	if beyond := beyondSmall(report); !adds && beyond > 0 && s.refilled+beyond > maxRefilled {
		return name, false, true
	}
	name = types.NamespacedName{Namespace: p.job.namespace, Name: p.name}
	deleting, grace := pod.DeletionTimestamp != nil, int32(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = int32(min(max(*pod.DeletionGracePeriodSeconds, 0), 1<<30))
	}
	changed = p.digest != digest || p.deleting != deleting
	if changed && p.since == 0 {
		p.since = s.now().UnixNano()
	}
	s.count(p, -1)
	p.digest, p.glance, p.report, p.phase, p.deleting, p.grace = digest, at, report, phase(pod.Status.Phase), deleting, grace
	p.refilled = !adds
	s.count(p, 1)
	return name, changed, false
}

// count counts the report of a Pod, if it was refilled.
func (s *Store) count(p *held, by int) {
	if p.refilled {
		s.refilled += by * beyondSmall(p.report)
	}
}

// add adds a Pod. One of its name that was there before is gone: the intake sees to that.
func (s *Store) add(pod *corev1.Pod, owner *metav1.OwnerReference) *held {
	of := s.jobs[owner.UID]
	if of == nil || of.namespace != pod.Namespace {
		of = &job{namespace: pod.Namespace, name: owner.Name, uid: owner.UID}
		s.jobs[owner.UID] = of
	}
	of.pods++
	p := &held{name: pod.Name, uid: pod.UID, job: of, digest: "-"}
	p.past = podtimes.Over(pod) && podtimes.End(pod).Before(s.began.Add(-longPast))
	s.names[types.NamespacedName{Namespace: of.namespace, Name: p.name}], s.uids[p.uid] = p, p
	return p
}

// Remove implements the feed's store.
func (s *Store) Remove(uid types.UID) {
	s.mu.Lock()
	p := s.uids[uid]
	if p == nil {
		s.mu.Unlock()
		return
	}
	name := types.NamespacedName{Namespace: p.job.namespace, Name: p.name}
	s.count(p, -1)
	delete(s.uids, uid)
	if s.names[name] == p {
		delete(s.names, name)
	}
	if p.job.pods--; p.job.pods == 0 && s.jobs[p.job.uid] == p.job {
		delete(s.jobs, p.job.uid)
	}
	s.mu.Unlock()
	s.changed(name)
}

// Keys implements the feed's store.
func (s *Store) Keys() []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.uids))
}
