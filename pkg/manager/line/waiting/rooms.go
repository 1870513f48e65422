package waiting

import (
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/placement"
)

// rooms are what workers have, of which some have changed. What was computed is kept.
type rooms struct {
	workers Workers
	changed placement.Changes
	known   map[string]*room
	// ends are those of the workers for which they were asked for, in order.
	ends  map[string][]End
	looks *looks
}

// maxLooks bounds the looks at nodes for the Jobs of one namespace, each of which may have a Shape
// of its own: some 30 ms.
const maxLooks = 1_000_000

// What takes as long as so many looks at nodes: to make up a node that may be added, to find out
// when a Job ends that runs, to go through one that waits, and to have one reconciled and judged
// anew.
const (
	LooksPerAdded = 150
	looksPerEnd   = 20
	looksPerJob   = 100
	looksPerWoken = 1000
	// for each worker that has changed, and each that the Job waits for
	looksPerChanged = 7
	looksPerNeed    = 3
)

// looksFor are those that it takes to look at a Job that waits, without any node.
func (r *rooms) looksFor(job *Job) int {
	return looksPerJob + looksPerChanged*len(r.changed) + looksPerNeed*job.Needs.Len()
}

// looks counts how often a node was compared with what a Job of some namespace needs.
type looks struct {
	// by namespace; those that come are for the Jobs of namespace. What all that ends takes counts
	// apart, as gathered.
	by, gathered map[string]int
	namespace    string
}

// areOver reports whether a namespace has had its looks. Otherwise the next ones are for it.
func (l *looks) areOver(namespace string) bool {
	l.namespace = namespace
	return l.by[namespace]+l.gathered[namespace] > maxLooks
}

// over reports whether a look for the namespace that has its looks now is to be cut short. What it
// took to gather the ends cuts no look short: it would be in vain.
func (l *looks) over() bool { return l.by[l.namespace] > maxLooks }

func (l *looks) add(count int) { l.by[l.namespace] += count }

func roomsOf(changed placement.Changes, workers Workers) rooms {
	return rooms{workers: workers, changed: changed.Clone(), known: map[string]*room{}, ends: map[string][]End{}, looks: &looks{by: map[string]int{}, gathered: map[string]int{}}}
}

// Helps is asked for some Jobs, whether they wait in a Line or not, which of them may be helped by
// changes of workers.
type Helps struct{ rooms *rooms }

// Helped is to be made anew when anything has changed.
func Helped(workers Workers) Helps {
	r := roomsOf(nil, workers)
	return Helps{&r}
}

// MayAsk reports whether it may be asked for one more Job: it's not if that has taken too long for
// the Jobs of its namespace.
func (h Helps) MayAsk(job *Job) bool {
	if h.rooms.looks.areOver(job.Key.Namespace) {
		return false
	}
	h.rooms.looks.add(h.rooms.looksFor(job))
	return true
}

// By reports whether the changes of a worker may help a Job, for which MayAsk was called last.
func (h Helps) By(job *Job, worker string, changed placement.Changes) bool {
	h.rooms.changed = changed
	return h.rooms.mayHelp(job, worker)
}

// Wakes is told that the Job is reconciled, for which MayAsk was called last.
func (h Helps) Wakes() { h.rooms.looks.add(looksPerWoken) }

// mayHelp reports whether what has changed in a worker may be what a Job needs there.
func (r *rooms) mayHelp(job *Job, worker string) bool {
	need, possible := job.Needs.Get(worker)
	helps := r.changed[worker].Of(job.Key.Namespace)
	if helps != 0 {
		helps |= need.Missed
	}
	if need.HelpedBy != 0 {
		helps &= need.HelpedBy
	}
	if !possible || helps == 0 {
		return false
	}
	room := r.room(worker)
	switch {
	case room == nil || need.Lacks == Other || need.Pods <= 0 || helps&^(placement.RoomChange|placement.NodesChange) != 0:
		return true
	case need.Lacks == Room && room.idle(job.Shape) < need.Pods: // nodes have gone: it needs fewer Pods there by now, or never fits
		return true
	default:
		return room.has(&need, job.Shape)
	}
}

// room is what a worker has; nil: that isn't known.
func (r *rooms) room(worker string) *room {
	of, known := r.known[worker]
	if !known {
		if nodes, ok := r.workers.Nodes(worker); ok {
			of = &room{worker: worker, workers: r.workers, nodes: nodes, looks: r.looks, free: map[string]int64{}, all: map[string]int64{}, fits: map[string]fit{}}
		}
		r.known[worker] = of
	}
	return of
}

// fit computes when a Job fits in a room.
func (r *rooms) fit(in *room, job *Job, now time.Time) fit {
	return in.fit(job, now, func() []End { return r.endsIn(in.worker) })
}

// endsIn are the expected ends in a worker, in order.
func (r *rooms) endsIn(worker string) []End {
	ends, known := r.ends[worker]
	if !known {
		ends = r.workers.Ends(worker)
		r.looks.gathered[r.looks.namespace] += len(ends) * looksPerEnd
		slices.SortFunc(ends, End.before)
		r.ends[worker] = ends
	}
	return ends
}

// placed takes note of a Job that was placed in a worker, where it may have had Pods or a
// reservation before. All else ends there as before.
func (r *rooms) placed(job *Job, worker string) {
	delete(r.known, worker)
	ends, known := r.ends[worker]
	if !known {
		return
	}
	ends = slices.DeleteFunc(ends, func(end End) bool { return end.Job == job.Key })
	if end, runs := r.workers.EndOf(worker, job); runs {
		at, _ := slices.BinarySearchFunc(ends, end, End.before)
		ends = slices.Insert(ends, at, end)
	}
	r.ends[worker] = ends
}
