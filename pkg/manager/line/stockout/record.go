package stockout

import (
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
	workers map[string]map[string]*entry
}

// entry is about one shape in one worker.
type entry struct {
	// namespace of the Job that failed first.
	namespace string
	// times is how often it failed, one after the other, and until is until when no Job is to follow.
	times int
	until time.Time
	// tries is the Job that was sent there since; zero: none.
	tries types.NamespacedName
}

// IsEmpty reports whether no worker is out for any shape.
func (r *Record) IsEmpty() bool { return len(r.workers) == 0 }

// Failed records that no Pod of a Job started within the worker's timeout, and returns until when
// it's out. False: it was out already, or another Job is trying.
func (r *Record) Failed(worker, shape string, job types.NamespacedName, timeout time.Duration, now time.Time) (time.Time, bool) {
	e := r.get(worker, shape)
	if e != nil && now.Before(e.until) && e.tries != job {
		return e.until, false
	}
	if e == nil {
		e = &entry{namespace: job.Namespace}
		r.put(worker, shape, e, now)
	}
	pause := timeout
	for range e.times {
		pause = min(2*pause, max(maxWhile, timeout))
	}
	e.times, e.until, e.tries = e.times+1, now.Add(pause), types.NamespacedName{}
	return e.until, true
}

// IsOut reports whether a Job isn't to be sent to a worker.
func (r *Record) IsOut(worker, shape string, job types.NamespacedName, now time.Time) bool {
	e := r.get(worker, shape)
	return e != nil && now.Before(e.until) && e.tries != job
}

// IsDoubtful reports whether a worker is or was out, and no Pod has started there since. After a
// while that is forgotten: no Job of that shape may come to try.
func (r *Record) IsDoubtful(worker, shape string, now time.Time) bool {
	e := r.get(worker, shape)
	return e != nil && now.Sub(e.until) <= maxWhile
}

// IsOutForAll reports whether a worker is out, and no Job is trying: it's no use to wait there.
func (r *Record) IsOutForAll(worker, shape string, now time.Time) bool {
	e := r.get(worker, shape)
	return e != nil && now.Before(e.until) && e.tries == types.NamespacedName{}
}

// Chosen records that a Job is sent to a worker. If that was out before, others don't follow until
// a Pod has started, or could have. True: they are to be told when that is over.
func (r *Record) Chosen(worker, shape string, job types.NamespacedName, timeout time.Duration, now time.Time) (until time.Time, tries bool) {
	e := r.get(worker, shape)
	if e == nil || now.Before(e.until) {
		return time.Time{}, false
	}
	e.tries, e.until = job, now.Add(timeout)
	return e.until, true
}

// IsTrying reports whether a Job is the one that tries.
func (r *Record) IsTrying(worker, shape string, job types.NamespacedName) bool {
	e := r.get(worker, shape)
	return e != nil && e.tries == job
}

// Started records that a Pod of a shape has just started in a worker. False: it wasn't out.
func (r *Record) Started(worker, shape string) bool {
	if r.get(worker, shape) == nil {
		return false
	}
	r.drop(worker, shape)
	return true
}

// Entry is what is known about one shape in one worker.
type Entry struct {
	Shape string
	// Namespace of the Job that failed first.
	Namespace string
	Failures  int
	Until     time.Time
	// Trying: one Job is there to find out.
	Trying bool
}

// Entries are what is worth to be known of a worker after a restart, by shape. Of more than
// MaxStockouts, those of the namespace with the most are left out first.
func (r *Record) Entries(worker string, now time.Time) []Entry {
	kept := maps.Clone(r.workers[worker])
	for shape := range kept {
		if !r.IsDoubtful(worker, shape, now) {
			delete(kept, shape)
		}
	}
	for len(kept) > v1alpha1.MaxStockouts {
		delete(kept, leastWorth(kept))
	}
	var entries []Entry
	for _, shape := range slices.Sorted(maps.Keys(kept)) {
		e := kept[shape]
		entries = append(entries, Entry{
			Shape: shape, Namespace: e.namespace, Failures: e.times, Until: e.until, Trying: e.tries != types.NamespacedName{},
		})
	}
	return entries
}

// unknown stands for the Job that tries, of which only Entries tell.
var unknown = types.NamespacedName{Name: "/"}

// Restore records what Entries told before a restart, unless more is known.
func (r *Record) Restore(worker string, entries []Entry, now time.Time) {
	for _, known := range entries[:min(len(entries), v1alpha1.MaxStockouts)] {
		if r.get(worker, known.Shape) != nil {
			continue
		}
		e := &entry{namespace: known.Namespace, times: known.Failures, until: known.Until}
		if known.Trying {
			e.tries = unknown
		}
		r.put(worker, known.Shape, e, now)
	}
}

// Forget drops all about a worker.
func (r *Record) Forget(worker string) { delete(r.workers, worker) }

func (r *Record) get(worker, shape string) *entry { return r.workers[worker][shape] }

func (r *Record) put(worker, shape string, e *entry, now time.Time) {
	if r.workers == nil {
		r.workers = map[string]map[string]*entry{}
	}
	if r.workers[worker] == nil {
		r.workers[worker] = map[string]*entry{}
	}
	for old := range r.workers[worker] {
		if !r.IsDoubtful(worker, old, now) { // no Job of that shape has come since
			delete(r.workers[worker], old)
		}
	}
	if len(r.workers[worker]) >= maxShapes {
		r.drop(worker, leastWorth(r.workers[worker]))
	}
	if r.workers[worker] == nil {
		r.workers[worker] = map[string]*entry{}
	}
	r.workers[worker][shape] = e
}

// leastWorth is the shape that ends first, of the namespace with the most.
func leastWorth(shapes map[string]*entry) string {
	count := map[string]int{}
	for _, e := range shapes {
		count[e.namespace]++
	}
	least := ""
	for shape, e := range shapes {
		o := shapes[least]
		switch {
		case o == nil, count[e.namespace] > count[o.namespace]:
			least = shape
		case count[e.namespace] < count[o.namespace]:
		case e.namespace != o.namespace:
			if e.namespace < o.namespace {
				least = shape
			}
		case e.until.Before(o.until), e.until.Equal(o.until) && shape < least:
			least = shape
		}
	}
	return least
}

func (r *Record) drop(worker, shape string) {
	delete(r.workers[worker], shape)
	if len(r.workers[worker]) == 0 {
		delete(r.workers, worker)
	}
}
