package shards

import (
	"cmp"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Room is what a worker has for the Job.
type Room struct {
	Worker string
	// Pods of the Job that can run there at once: what is free, and what its shard holds.
	Pods int64
	// Open: the worker takes new Pods of the Job. One with a shard that isn't open keeps what it
	// has.
	Open bool
	// Elastic: its shard can change while its mirror runs.
	Elastic bool
	// Idle: no mirror of the Job runs there: there is none, or it has ended. Only then a fixed
	// shard can be replaced, or a first one be created.
	Idle bool
	// Held, of an elastic shard, are the indexes that its worker can start or still has Pods of.
	// Known: the mirror that tells it names the indexes that the hub has last written there, and
	// what it has completed or failed is in the Job's status already. Else nothing is taken from
	// the shard.
	Held  intervals.Set
	Known bool
}

// Divide returns the next placement of a Job; it is the present one if nothing is to change. The
// rooms come with the best worker first; limit is the most workers at once.
//
// It divides the parallelism first: so many Pods as are wanted go to the rooms in their order, but
// no part is lowered below what its shard has left, so that no Pod is killed; only when the user
// lowers the Job's parallelism, all parts fall in proportion, also that of a shard that is
// stopping. Then it assigns what is unassigned, so that each shard has the same number of
// completions per Pod; see level. A share without room stays unassigned. Last, elastic shards are
// asked for indexes that a hungry one would start earlier.
func Divide(job *batchv1.Job, now Placement, rooms []Room, limit int) Placement {
	d := newDivision(job, now.within(job), rooms, limit)
	d.raiseParts()
	d.assign()
	return d.placement()
}

// division is one run of Divide.
type division struct {
	indexed bool
	// parallelism of the Job.
	parallelism int
	limit       int
	settled     Counters
	// workers with a shard, in the order of the rooms, and then those that may get one.
	workers []*worker
	// open are the indexes that have neither completed nor failed; unsettled has also those that
	// spec.completions doesn't include now.
	open, unsettled intervals.Set
	// unassigned is what no shard has.
	unassigned Amount
	// pool is the number of completions that can be assigned: those that are unassigned, returning,
	// or movable.
	pool int
	// missing is how many of the Pods that are wanted have no room.
	missing int
	// alone: one worker has all the Pods. elastic: an elastic shard can be assigned something.
	// reserving: see solve.
	alone, elastic, reserving bool
}

// worker is one with a shard, or with room for one.
type worker struct {
	Shard
	room Room
	// isNew: it has no shard yet.
	isNew bool
	// todo are the indexes that remain in the shard and stay; returning those that don't. held are
	// those that were to, and can't: see count.
	todo, returning, held intervals.Set
	// keeps is the number of completions that remain in the shard and stay.
	keeps int
	// surplus is what raiseParts can take from the shard's part.
	surplus int
	// portion is what a fixed shard is to get.
	portion float64
	// gets is what it is assigned now; lacks is what it would get if it were there.
	gets, lacks int
}

func newDivision(job *batchv1.Job, now Placement, rooms []Room, limit int) *division {
	settled := settledIndexes(job)
	d := &division{
		indexed:     Indexed(job),
		parallelism: int(ptr.Deref(job.Spec.Parallelism, 1)),
		limit:       limit,
		settled:     now.Settled,
		open:        intervals.Range(0, completions(job)).Minus(settled),
		unsettled:   intervals.Range(0, intervals.NoLimit).Minus(settled),
	}
	has := map[string]bool{}
	for _, room := range rooms {
		if has[room.Worker] {
			continue
		}
		has[room.Worker] = true
		w := &worker{Shard: Shard{Worker: room.Worker}, room: room, isNew: true}
		if shard, ok := now.In(room.Worker); ok {
			w.Shard, w.isNew = shard, false
		}
		w.room.Elastic = room.Elastic && d.indexed
		w.room.Pods = min(max(room.Pods, 0), math.MaxInt32)
		d.workers = append(d.workers, w)
	}
	for _, shard := range now.Shards {
		if !has[shard.Worker] {
			d.workers = append(d.workers, &worker{Shard: shard})
		}
	}
	slices.SortStableFunc(d.workers, func(a, b *worker) int { return cmp.Compare(rank(a), rank(b)) })
	for _, w := range d.workers {
		d.release(w)
		d.count(w)
	}
	d.unassigned = d.placement().unassigned(job, d.open)
	d.pool = d.unassigned.Len()
	for _, w := range d.workers {
		d.pool += w.movable() + w.returning.Len()
	}
	return d
}

// rank puts the workers without a shard last: a Job has no more workers than it needs.
func rank(w *worker) int {
	if w.isNew {
		return 1
	}
	return 0
}

// release takes out of an elastic shard what its worker has given back. A fixed one can't give
// anything back.
func (d *division) release(w *worker) {
	if w.Returning == "" || w.Stopping || w.room.Worker == "" {
		return
	}
	asked := intervals.ParseLenient(w.Returning, intervals.NoLimit).Intersect(w.Indexes)
	if !w.room.Elastic {
		asked = nil
	} else if w.room.Known {
		w.Indexes = w.Indexes.Minus(asked.Minus(w.room.Held))
	}
	// Returning isn't written anew as each of its indexes completes.
	left := asked.Intersect(w.Indexes)
	if len(left.Intersect(d.open)) == 0 {
		w.Returning = ""
	} else if left.Len() < asked.Len() {
		w.Returning = left.Intersect(d.open).String()
	}
}

func (d *division) count(w *worker) {
	if !d.indexed {
		w.keeps = max(w.Number-int(w.Succeeded), 0)
		return
	}
	remaining := w.Indexes.Intersect(d.open)
	if w.isElastic() {
		w.returning = remaining.Intersect(intervals.ParseLenient(w.Returning, intervals.NoLimit))
	}
	w.todo = remaining.Minus(w.returning)
	if w.room.Known && w.Parallelism == 0 {
		// They have failed there, and wait for a Pod that the shard may not have: it needs a part.
		w.held, w.returning = w.returning, nil
	}
	w.keeps = w.todo.Len() + w.held.Len()
}

// placement assembles the result. A shard that is empty keeps its worker, and so its mirror and its
// Pods' logs, unless the limit leaves no place for a new one.
func (d *division) placement() Placement {
	next := Placement{Settled: d.settled}
	var empty []string
	for _, w := range d.workers {
		if w.isNew && w.Len() == 0 {
			continue
		}
		next.Shards = append(next.Shards, w.Shard)
		if d.isDispensable(w) {
			empty = append(empty, w.Worker)
		}
	}
	created := slices.ContainsFunc(d.workers, func(w *worker) bool { return w.isNew && w.Len() > 0 })
	for created && len(next.Shards) > d.limit && len(empty) > 0 {
		next, empty = next.Without(empty[len(empty)-1]), empty[:len(empty)-1]
	}
	slices.SortFunc(next.Shards, func(a, b Shard) int { return cmp.Compare(a.Worker, b.Worker) })
	return next
}

// left is the number of completions that remain in the shard.
func (w *worker) left() int { return w.keeps + w.returning.Len() }

// isElastic reports whether the shard can change now.
func (w *worker) isElastic() bool { return w.room.Elastic && !w.Stopping }

// takes reports whether the shard can grow now, or be replaced, or created.
func (w *worker) takes() bool {
	switch {
	case !w.room.Open || w.Stopping:
		return false
	case w.isNew:
		return w.room.Idle
	default:
		return w.room.Elastic || w.room.Idle && w.left() == 0
	}
}

// movable is the number of indexes that the shard's worker can give back: it is taken for granted
// that it has started as many as its part, the lowest ones.
func (w *worker) movable() int {
	if !w.isElastic() || !w.room.Known {
		return 0
	}
	return max(w.todo.Len()-max(int(w.Parallelism)-w.held.Len(), 0), 0)
}

// isDispensable reports whether the worker's place can be another's: it has nothing left, no part,
// and no mirror that could start a Pod.
func (d *division) isDispensable(w *worker) bool {
	return !w.isNew && w.left() == 0 && (w.isElastic() || w.room.Idle && !w.Stopping) && d.useful(w) == 0
}
