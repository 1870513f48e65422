package stockout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// maxWhile bounds for how long a worker is out for a shape before it's tried again.
	maxWhile = time.Hour
	// maxShapes bounds those that are remembered of one worker.
	maxShapes = 200
)

// Record has the shapes for which workers are out. Its zero value is empty.
type Record struct {
	workers map[string]map[subject]*entry
}

// subject is whose Pods an entry is about.
type subject struct {
	shape string
	// namespace is empty if it's about those of all, because Jobs of several have failed.
	namespace string
}

// subjects are those that concern a Job.
func subjects(shape string, job types.NamespacedName) [2]subject {
	return [2]subject{{shape, job.Namespace}, {shape, ""}}
}

// entry is about one subject in one worker.
type entry struct {
	// times is how often it failed, one after the other, and until is until when no Job is to follow.
	times int
	until time.Time
	// tries is the Job that was sent there since; zero: none.
	tries types.NamespacedName
}

func (e *entry) isOut(now time.Time) bool { return now.Before(e.until) }

// IsEmpty reports whether no worker is out for any shape.
func (r *Record) IsEmpty() bool { return len(r.workers) == 0 }

// Failed records that no Pod of a Job started within the worker's timeout, and returns until when
// it's out. False: it was out already, another Job is trying, or the namespace has as many shapes
// as are remembered. It counts for other namespaces if a Job of another one has failed, too.
func (r *Record) Failed(worker, shape string, job types.NamespacedName, timeout time.Duration, now time.Time) (until time.Time, forAll, is bool) {
	until, is = r.fail(worker, subject{shape, job.Namespace}, job, timeout, now)
	if !is {
		return until, false, false
	}
	for other, e := range r.workers[worker] {
		if other.shape == shape && other.namespace != "" && other.namespace != job.Namespace && e.isOut(now) {
			if ofAll, _ := r.fail(worker, subject{shape, ""}, job, timeout, now); ofAll.After(until) {
				until = ofAll
			}
			return until, true, true
		}
	}
	return until, false, true
}

func (r *Record) fail(worker string, about subject, job types.NamespacedName, timeout time.Duration, now time.Time) (time.Time, bool) {
	e := r.workers[worker][about]
	if e != nil && e.isOut(now) && e.tries != job {
		return e.until, false
	}
	if e == nil {
		e = &entry{until: now}
		if !r.put(worker, about, e, now) {
			return now, false
		}
	}
	pause := timeout
	for range e.times {
		pause = min(2*pause, max(maxWhile, timeout))
	}
	e.times, e.until, e.tries = e.times+1, now.Add(pause), types.NamespacedName{}
	return e.until, true
}

// about reports whether something is so of an entry that concerns a Job.
func (r *Record) about(worker, shape string, job types.NamespacedName, is func(*entry) bool) bool {
	for _, s := range subjects(shape, job) {
		if e := r.workers[worker][s]; e != nil && is(e) {
			return true
		}
	}
	return false
}

// IsOut reports whether a Job isn't to be sent to a worker.
func (r *Record) IsOut(worker, shape string, job types.NamespacedName, now time.Time) bool {
	return r.about(worker, shape, job, func(e *entry) bool { return e.isOut(now) && e.tries != job })
}

// IsDoubtful reports whether a worker is or was out, and no Pod has started there since. After a
// while that is forgotten: no Job of that shape may come to try.
func (r *Record) IsDoubtful(worker, shape string, job types.NamespacedName, now time.Time) bool {
	return r.about(worker, shape, job, func(e *entry) bool { return e.isDoubtful(now) })
}

func (e *entry) isDoubtful(now time.Time) bool { return now.Sub(e.until) <= maxWhile }

// IsOutForAll reports whether a worker is out, and no Job is trying: it's no use to wait there.
func (r *Record) IsOutForAll(worker, shape string, job types.NamespacedName, now time.Time) bool {
	return r.about(worker, shape, job, func(e *entry) bool { return e.isOut(now) && e.tries == types.NamespacedName{} })
}

// Chosen records that a Job is sent to a worker. If that was out before, others don't follow until
// a Pod has started, or could have. True: they are to be told when that is over.
func (r *Record) Chosen(worker, shape string, job types.NamespacedName, timeout time.Duration, now time.Time) (until time.Time, tries bool) {
	tries = r.about(worker, shape, job, func(e *entry) bool { return !e.isOut(now) })
	for _, s := range subjects(shape, job) {
		if e := r.workers[worker][s]; e != nil && !e.isOut(now) {
			e.tries, e.until = job, now.Add(timeout)
		}
	}
	return now.Add(timeout), tries
}

// IsTrying reports whether a Job is the one that tries.
func (r *Record) IsTrying(worker, shape string, job types.NamespacedName) bool {
	return r.about(worker, shape, job, func(e *entry) bool { return e.tries == job })
}

// Started records that a Pod of a shape has just started in a worker, of whatever namespace. False:
// it wasn't out.
func (r *Record) Started(worker, shape string) bool {
	entries := r.workers[worker]
	before := len(entries)
	maps.DeleteFunc(entries, func(s subject, _ *entry) bool { return s.shape == shape })
	if len(entries) == 0 {
		r.Forget(worker)
	}
	return len(entries) < before
}

// Entry is what is known about one shape in one worker.
type Entry struct {
	Shape string
	// Namespace of the Jobs that failed; empty: several, and it counts for all.
	Namespace string
	Failures  int
	Until     time.Time
	// Trying: one Job is there to find out.
	Trying bool
}

// Entries are what is worth to be known of a worker after a restart, by shape and namespace. Of
// more than MaxStockouts, those of the namespace with the most are left out first.
func (r *Record) Entries(worker string, now time.Time) []Entry {
	kept := maps.Clone(r.workers[worker])
	maps.DeleteFunc(kept, func(_ subject, e *entry) bool { return !e.isDoubtful(now) })
	for len(kept) > v1alpha1.MaxStockouts {
		delete(kept, leastWorth(kept))
	}
	var entries []Entry
	for _, s := range slices.SortedFunc(maps.Keys(kept), subject.compare) {
		e := kept[s]
		entries = append(entries, Entry{
			Shape: s.shape, Namespace: s.namespace, Failures: e.times, Until: e.until, Trying: e.tries != types.NamespacedName{},
		})
	}
	return entries
}

func (s subject) compare(o subject) int {
	return cmp.Or(cmp.Compare(s.shape, o.shape), cmp.Compare(s.namespace, o.namespace))
}

// unknown stands for the Job that tries, of which only Entries tell.
var unknown = types.NamespacedName{Name: "/"}

// Restore records what Entries told before a restart, unless more is known.
func (r *Record) Restore(worker string, entries []Entry, now time.Time) {
	for _, known := range entries[:min(len(entries), v1alpha1.MaxStockouts)] {
		about := subject{known.Shape, known.Namespace}
		if r.workers[worker][about] != nil {
			continue
		}
		e := &entry{times: known.Failures, until: known.Until}
		if known.Trying {
			e.tries = unknown
		}
		r.put(worker, about, e, now)
	}
}

// Forget drops all about a worker.
func (r *Record) Forget(worker string) { delete(r.workers, worker) }

// put remembers an entry. False: there are too many, and it would be the first to be forgotten, as
// the others of its namespace are still out. Whoever has that many shapes replaces none by another.
func (r *Record) put(worker string, about subject, e *entry, now time.Time) bool {
	entries := r.workers[worker]
	// No Job of such a shape has come since.
	maps.DeleteFunc(entries, func(_ subject, old *entry) bool { return !old.isDoubtful(now) })
	if entries == nil {
		entries = map[subject]*entry{}
		if r.workers == nil {
			r.workers = map[string]map[subject]*entry{}
		}
		r.workers[worker] = entries
	}
	entries[about] = e
	if len(entries) <= maxShapes {
		return true
	}
	least := leastWorth(entries)
	delete(entries, least)
	return least != about
}

// leastWorth is what ends first, of the namespace with the most.
func leastWorth(entries map[subject]*entry) subject {
	count := map[string]int{}
	for s := range entries {
		count[s.namespace]++
	}
	return slices.MinFunc(slices.Collect(maps.Keys(entries)), func(s, o subject) int {
		return cmp.Or(
			cmp.Compare(count[o.namespace], count[s.namespace]), cmp.Compare(s.namespace, o.namespace),
			entries[s].until.Compare(entries[o].until), s.compare(o),
		)
	})
}
