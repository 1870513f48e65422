package job

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/manager/line"
)

// store holds the records of all Jobs, one for each, and indexes over them. The watches of the hub
// and of the workers open records; the watch of the hub forgets them. A reconcile that is under way
// when its Job is forgotten keeps a record that is in the store no more, so that nothing of the Job
// comes back.
type store struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*record
	// onWorker has the Jobs placed on a worker, or by an empty name on none; counts the Jobs by worker
	// and state.
	onWorker map[string]map[*record]struct{}
	counts   map[status]int
	// names is what the placements of each namespace's Jobs take that name several workers. Beyond
	// maxNames, those that aren't registered are left out.
	names        map[string]int
	isRegistered func(worker string) bool
	// mirrored has the Jobs with a mirror that this process has written to in a worker; answered has
	// those of which an answer of the worker is remembered; kept has those with a mirror that the
	// worker should have removed. heldBytes is what answers and last states take, by worker, and
	// expiredAt when answers there were last dropped that have expired.
	mirrored, answered, kept map[string]map[*record]struct{}
	heldBytes                map[string]int64
	expiredAt                map[string]time.Time
	runtimes                 *line.Runtimes
	// owed has the Jobs that are gone and of which a worker may have a mirror that its watch doesn't
	// show.
	owed map[string]map[*record]struct{}
	// waiting are the Jobs to be reconciled when a worker has more free capacity, or another state.
	waiting map[types.NamespacedName]struct{}
	// reconciling are the Jobs that are being reconciled, and for what waiters has left each out.
	reconciling map[types.NamespacedName]leftOut
	// heldBack are the Jobs to be reconciled when the labels of their namespace change.
	heldBack map[types.NamespacedName]struct{}
	groups   groups
}

func newStore(runtimes *line.Runtimes) *store {
	return &store{
		records:  map[types.NamespacedName]*record{},
		onWorker: map[string]map[*record]struct{}{},
		counts:   map[status]int{},
		names:    map[string]int{},
		mirrored: map[string]map[*record]struct{}{},
		answered: map[string]map[*record]struct{}{},
		kept:     map[string]map[*record]struct{}{},
		owed:     map[string]map[*record]struct{}{},
		runtimes: runtimes,

		heldBytes:    map[string]int64{},
		expiredAt:    map[string]time.Time{},
		isRegistered: func(string) bool { return false },
		waiting:      map[types.NamespacedName]struct{}{},
		reconciling:  map[types.NamespacedName]leftOut{},
		heldBack:     map[types.NamespacedName]struct{}{},
		groups:       newGroups(),
	}
}

// open returns the record of a name, and makes one if there is none.
func (s *store) open(key types.NamespacedName) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openLocked(key)
}

func (s *store) openLocked(key types.NamespacedName) *record {
	r := s.records[key]
	if r == nil {
		// The name may be part of a larger text, which isn't kept for it.
		key = types.NamespacedName{Namespace: unique.Make(key.Namespace).Value(), Name: strings.Clone(key.Name)}
		r = &record{store: s, key: key, indexed: nowhere, memory: nothing}
		s.records[key] = r
	}
	return r
}

// runOf is that of the hub Job of a name; zero: none is known.
func (s *store) runOf(key types.NamespacedName) run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[key]; r != nil {
		return r.run
	}
	return run{}
}

// of returns the record of a hub Job; nil: there is none.
func (s *store) of(key types.NamespacedName, id jobID) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[key]; r != nil && r.id == id {
		return r
	}
	return nil
}

// indexLocked takes over the worker and the state of a hub Job, and returns the workers whose Jobs
// have changed.
func (s *store) indexLocked(r *record, job *batchv1.Job) (changed []string) {
	if s.records[r.key] != r {
		return nil // forgotten: a write's answer came after the deletion
	}
	s.joinLocked(r, job)
	before, next := r.indexed.Value(), s.placedLocked(r, job)
	if r.id == idOf(job) && r.indexed == next {
		return nil
	}
	if next.Value().hasEnded() && (r.id != idOf(job) || !before.hasEnded()) {
		s.runtimes.Learn(job, next.Value().workers())
	}
	s.unindexLocked(r)
	r.id, r.indexed = idOf(job), next
	s.addNamesLocked(r, next.Value().bytes())
	for _, is := range next.Value().statuses() {
		link(s.onWorker, is.worker, r)
		s.counts[is]++
	}
	changed = slices.Concat(before.workers(), next.Value().workers())
	slices.Sort(changed)
	return slices.Compact(changed)
}

func (s *store) unindexLocked(r *record) {
	if r.id == unseen {
		return
	}
	s.addNamesLocked(r, -r.indexed.Value().bytes())
	for _, was := range r.indexed.Value().statuses() {
		unlink(s.onWorker, was.worker, r)
		if s.counts[was]--; s.counts[was] == 0 {
			delete(s.counts, was)
		}
	}
}

// maxNames bounds what the forged placements of the Jobs of one namespace take, in bytes: each may
// name a thousand workers that there aren't.
const maxNames = 4 << 20

func (s *store) placedLocked(r *record, job *batchv1.Job) unique.Handle[placed] {
	next := placedOf(job)
	more := next.bytes()
	if more > 0 && s.names[r.key.Namespace]-r.indexed.Value().bytes()+more > maxNames {
		next = next.only(s.isRegistered)
	}
	return unique.Make(next)
}

func (s *store) addNamesLocked(r *record, bytes int) {
	if s.names[r.key.Namespace] += bytes; s.names[r.key.Namespace] == 0 {
		delete(s.names, r.key.Namespace)
	}
}

// link puts a record into the set of a worker.
func link(sets map[string]map[*record]struct{}, worker string, r *record) {
	if sets[worker] == nil {
		sets[worker] = map[*record]struct{}{}
	}
	sets[worker][r] = struct{}{}
}

// unlink takes a record out of the set of a worker.
func unlink(sets map[string]map[*record]struct{}, worker string, r *record) {
	if delete(sets[worker], r); len(sets[worker]) == 0 {
		delete(sets, worker)
	}
}

// forget drops a record, unless the name is that of another hub Job by now. It returns the record
// as it was; nil: there was none.
func (s *store) forget(key types.NamespacedName, id jobID) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	if r == nil || r.id != id {
		return nil
	}
	s.leaveLocked(r)
	s.unindexLocked(r)
	for worker := range r.mirrors {
		s.unlinkMirrorLocked(r, worker)
	}
	r.unlinkOwedLocked()
	delete(s.records, key)
	delete(s.waiting, key)
	delete(s.heldBack, key)
	return r
}

// forgetWorker drops what is remembered of the mirrors in a worker that was removed.
func (s *store) forgetWorker(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.mirrored[worker] {
		s.unlinkMirrorLocked(r, worker)
		delete(r.mirrors, worker)
	}
	delete(s.expiredAt, worker)
}

// forgetAnswers drops what a worker has said of the mirrors there. What it owes, and how often it
// was tried, stays: a worker may say again and again that it was restored.
func (s *store) forgetAnswers(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.mirrored[worker] {
		m := r.mirrors[worker]
		*m = mirrorMemory{
			patches: m.patches, creations: m.creations, cleanups: m.cleanups, isCleaned: m.isCleaned,
			release: m.release, unreleased: m.unreleased, refusal: m.refusal, counted: m.counted,
		}
		s.countLocked(r, worker)
	}
}

// looksSoon reports whether a Job is looked at anyway, as its status waits to be written.
func (s *store) looksSoon(key types.NamespacedName, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	return r != nil && r.lookDue.After(now)
}

// all returns the names of all records.
func (s *store) all() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.records))
}

// unplaced returns the Jobs that are to be placed.
func (s *store) unplaced() []types.NamespacedName {
	return s.where("", func(r *record) bool { return r.indexed.Value().state == jobview.Pending && r.deletion == "" })
}

// on returns the Jobs placed on a worker.
func (s *store) on(worker string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return keysOf(s.onWorker[worker])
}

// unfinishedOn returns those of them that haven't finished.
func (s *store) unfinishedOn(worker string) []types.NamespacedName {
	return s.where(worker, func(r *record) bool { return !r.indexed.Value().hasEnded() })
}

func keysOf(records map[*record]struct{}) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(records))
	for r := range records {
		keys = append(keys, r.key)
	}
	return keys
}

// waitingIn returns the Jobs with a mirror that waits for its first Pod in a worker.
func (s *store) waitingIn(worker string) []types.NamespacedName {
	return s.where(worker, func(r *record) bool { return r.mirrors[worker] != nil && r.mirrors[worker].waiting != "" })
}

// where returns those of the Jobs placed on a worker of which something is so.
func (s *store) where(worker string, is func(*record) bool) (keys []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.onWorker[worker] {
		if is(r) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// unfinished returns the number of Jobs placed on a worker that have not finished.
func (s *store) unfinished(worker string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.onWorker[worker]) - s.counts[status{worker, jobview.Complete}] - s.counts[status{worker, jobview.Failed}]
}

// placed returns the number of all Jobs placed on a worker.
func (s *store) placed(worker string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.onWorker[worker])
}

// counted returns the number of Jobs by worker and state.
func (s *store) counted() map[status]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// waitingJobs is how many Jobs wait for capacity.
func (s *store) waitingJobs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// leftOut is for what a Job wasn't enqueued because it was being reconciled.
type leftOut int

const (
	ofNothing leftOut = iota
	ofWalk            // of the line, which looks at those in it itself
	ofChange          // of a worker
)

// waiters returns the Jobs that wait for capacity. It leaves out those that are being reconciled:
// most of them are getting a place. The others are enqueued when their reconcile ends.
func (s *store) waiters(why leftOut) (keys []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.waiting {
		if before, is := s.reconciling[key]; is {
			s.reconciling[key] = max(before, why)
		} else {
			keys = append(keys, key)
		}
	}
	return keys
}

// reconciles notes that a Job is being reconciled. Its end returns for what waiters has left the
// Job out, if it waits.
func (s *store) reconciles(key types.NamespacedName) (end func() leftOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconciling[key] = ofNothing
	return func() leftOut {
		s.mu.Lock()
		defer s.mu.Unlock()
		why := s.reconciling[key]
		delete(s.reconciling, key)
		if _, waits := s.waiting[key]; !waits {
			return ofNothing
		}
		return why
	}
}
