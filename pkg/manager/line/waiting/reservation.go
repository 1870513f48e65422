package waiting

import (
	"math"
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/placement"
)

// Reservation is the worker in which a Job that waits will fit first. Jobs behind it start there
// only if it still fits by its Start.
type Reservation struct {
	Job    *Job
	Worker string
	// Start is when the Job is expected to start, at the latest if Certain; zero: not known.
	Start   time.Time
	Certain bool
	// Told is when a Start was first known for the Job, and First that Start; zero: none was.
	Told, First time.Time
	// until is when what starts in its place must have ended: the Start, or, if that isn't known, a
	// guess; zero: there is none.
	until time.Time
	// spare is how many more Pods of the Job would fit at its Start.
	spare int64
	// unsure: the last look at the worker was cut short.
	unsure bool
	// room is the worker's, nodes are those for the Job, once they were needed, and losses are by
	// Shape of what was asked about.
	room   *room
	nodes  []*placement.Node
	losses map[string]int64
}

// maxLosses bounds the Shapes that are remembered of what was asked about: each Job may have
// another one, and a reservation may hold for long.
const maxLosses = 1000

// Unlimited is any number of Pods.
const Unlimited = math.MaxInt64

// admits is how many Pods of a Job behind it may start in the worker now.
func (r *Reservation) admits(job *Job, now time.Time) int64 {
	if r.endsBefore(job, now) {
		return Unlimited
	}
	lost := r.loss(job.Shape)
	if lost == 0 {
		return Unlimited
	}
	return r.spare / lost
}

// endsBefore reports whether a Job that starts now has ended by the time at which the room is
// wanted. A Start that is certain isn't put at risk by a guess.
func (r *Reservation) endsBefore(job *Job, now time.Time) bool {
	runs := job.Runtime
	if runs == 0 && !r.Certain {
		runs = job.Usual[r.Worker].at(now)
	}
	return runs > 0 && !now.Add(runs).After(r.until)
}

// take counts Pods of a Job behind it that start in the worker.
func (r *Reservation) take(job *Job, pods int64, now time.Time) {
	if !r.endsBefore(job, now) {
		r.spare = max(r.spare-pods*r.loss(job.Shape), 0)
	}
}

// loss is by how many Pods less the Job may have for one Pod of another Shape.
func (r *Reservation) loss(by *placement.Shape) int64 {
	lost, known := r.losses[by.Key()]
	if !known {
		if r.mayMeet(by) {
			lost = Loss(r.Job.Shape, by)
		}
		if len(r.losses) >= maxLosses {
			clear(r.losses)
		}
		r.losses[by.Key()] = lost
	}
	return lost
}

// maxMeeting bounds the comparisons with one Shape, of some 1 ms: each Job that asks may have
// another one.
const maxMeeting = 30_000

// mayMeet reports whether Pods of another Shape may be on nodes on which those of the Job may be.
// If it takes long to find that out, they may.
func (r *Reservation) mayMeet(by *placement.Shape) bool {
	own, work := r.Job.Shape, 0
	if r.nodes == nil {
		r.nodes = r.room.nodesFor(own)
	}
	for _, node := range r.nodes {
		if work >= maxMeeting {
			return true
		}
		each := own.WorkOn(node.Object) + by.WorkOn(node.Object)
		work += each
		if r.room.looks.add(each); own.Suits(node.Object) && by.Suits(node.Object) {
			return true
		}
	}
	return false
}

// reserve finds the worker in which a Job will fit first, of those that no Job with a reservation
// before it could use. It keeps the one that it had until that time is over, so that what has ended
// there for it isn't in vain; nil: there is none, or it's not resources that the Job lacks.
func (w *walk) reserve(job *Job, had *Reservation) *Reservation {
	if job.Exempt || job.Divisible {
		return nil
	}
	if had != nil && w.isKept(had) {
		return had
	}
	fits := w.fits(job)
	first := ""
	for worker, f := range fits {
		if first == "" || f.before(fits[first], worker, first) {
			first = worker
		}
	}
	if first == "" {
		return nil
	}
	if had == nil {
		return w.newReservation(job, first, fits[first])
	}
	if f, is := fits[had.Worker]; is && f.isWorthKeeping(fits[first], w.now) {
		first = had.Worker
	}
	next := w.newReservation(job, first, fits[first])
	if !had.First.IsZero() {
		next.Told, next.First = had.Told, had.First
	}
	return next
}

// keepRoom makes a reservation of the room that a Job has now; nil: it has none.
func (w *walk) keepRoom(job *Job) *Reservation {
	for _, worker := range w.unclaimed(job) {
		if r := w.room(worker); r != nil && r.slots(job.Shape) >= job.need(worker) {
			return w.newReservation(job, worker, w.fit(r, job, w.now))
		}
	}
	return nil
}

// unclaimed are the workers that a Job lacks room in, and that it may have, in order: looks at some
// of them may be cut short.
func (w *walk) unclaimed(job *Job) (workers []string) {
	for worker, need := range job.Needs.All() {
		if need.Lacks == Room && !w.claimed[worker] {
			workers = append(workers, worker)
		}
	}
	slices.Sort(workers)
	return workers
}

// fits is when a Job will fit in the workers that it lacks room in, and that it may have.
func (w *walk) fits(job *Job) map[string]fit {
	all := map[string]fit{}
	for _, worker := range w.unclaimed(job) {
		r := w.room(worker)
		if r == nil || r.slots(job.Shape) >= job.need(worker) {
			continue
		}
		if f := w.fit(r, job, w.now); f.ever {
			all[worker] = f
		}
	}
	return all
}

func (w *walk) newReservation(job *Job, worker string, f fit) *Reservation {
	r := &Reservation{Job: job, Worker: worker, room: w.room(worker), losses: map[string]int64{}}
	r.expect(f)
	if !r.Start.IsZero() {
		r.Told, r.First = w.now, r.Start
	}
	return r
}

// expect takes over when the Job will fit. A time that is made of nothing isn't told.
func (r *Reservation) expect(f fit) {
	r.Start, r.Certain, r.until, r.spare = time.Time{}, f.basis == ByDeadline, f.at, f.spare
	if f.basis < ByNothing {
		r.Start = f.at
	}
}

// isWorthKeeping reports whether a worker that was kept free for a Job stays the one although
// another is expected to be free before. Guesses change all the time.
func (f fit) isWorthKeeping(best fit, now time.Time) bool {
	if best.at.IsZero() || f.at.IsZero() {
		return f.at.Equal(best.at)
	}
	return !(f.basis == ByDeadline && best.basis == ByDeadline) && f.at.Sub(now) <= 2*best.at.Sub(now)
}

// isKept reports whether a reservation still holds, and brings it up to date.
func (w *walk) isKept(r *Reservation) bool {
	if w.claimed[r.Worker] || r.Start.IsZero() || w.now.After(r.Start) {
		return false
	}
	if w.changed[r.Worker] == nil && !r.unsure {
		return true
	}
	room := w.room(r.Worker)
	need, possible := r.Job.Needs.Get(r.Worker)
	if !possible || need.Lacks != Room || room == nil || room.slots(r.Job.Shape) >= r.Job.need(r.Worker) {
		return false
	}
	f := w.fit(room, r.Job, w.now)
	if r.unsure = w.looks.over(); r.unsure {
		return true // f was cut short
	}
	late := f.basis == ByNothing || f.at.After(r.Start)
	if !f.ever || late && r.Certain { // one before it has taken room, or the worker has less
		return false
	}
	r.room, r.nodes, r.losses, r.spare = room, nil, map[string]int64{}, 0
	if !late {
		r.expect(f)
	}
	return true
}

// before reports whether one worker is to be preferred to another.
func (f fit) before(o fit, worker, other string) bool {
	switch {
	case (f.basis == ByNothing) != (o.basis == ByNothing):
		return o.basis == ByNothing
	case f.at.IsZero() != o.at.IsZero():
		return o.at.IsZero()
	case !f.at.Equal(o.at):
		return f.at.Before(o.at)
	case f.lacks != o.lacks:
		return f.lacks < o.lacks
	default:
		return worker < other
	}
}
