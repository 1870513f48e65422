package waiting

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/placement"
)

// walk is one look at all Jobs of a line, in order.
type walk struct {
	rooms
	now      time.Time
	reserved map[string]*Reservation
	// claimed are the workers that the Jobs with a reservation could use.
	claimed map[string]bool
	// next are the Jobs that the next walk goes on from, by namespace: the looks of this one are over.
	next map[string]*Job
}

// Walk tries the Jobs that the changed workers may have room for, in order, and takes those out of
// the line that were placed. Those that wait get reservations. It reports whether it stopped at a
// Job that is undecided: then it's to be walked again, with the same workers, when that is known.
func (l *Line) Walk(now time.Time, changed placement.Changes, workers Workers) (undecided bool) {
	w := &walk{
		now: now, rooms: roomsOf(changed, workers), reserved: map[string]*Reservation{}, claimed: map[string]bool{},
		next: map[string]*Job{},
	}
	before := l.reserved
	of := make(map[*Job]*Reservation, len(before))
	for _, r := range before {
		of[r.Job] = r
	}
	jobs := l.jobs
	waiting := jobs[:0:0]
	for i, job := range jobs {
		if w.isPostponed(job, l.from) {
			if waiting = append(waiting, job); of[job] != nil && !w.claimed[of[job].Worker] {
				w.hold(of[job])
			}
			continue
		}
		outcome := w.try(before, job)
		if outcome.Undecided {
			waiting = append(waiting, jobs[i:]...)
			w.keepOthers(before, jobs[i:])
			undecided = true
			break
		}
		had := of[job]
		if outcome.Worker != "" {
			delete(l.byKey, job.Key)
			w.placed(job, outcome.Worker)
		} else {
			waiting = append(waiting, job)
			r := w.reserve(job, had)
			if outcome.Left {
				r = cmp.Or(w.keepRoom(job), r)
			}
			if r != nil {
				w.hold(r)
			}
		}
		if had != nil && w.reserved[had.Worker] != had {
			// for those behind it: it may admit more
			w.changed.Add(had.Worker, placement.Change{Kinds: placement.RoomChange})
		}
	}
	for namespace, first := range l.from {
		if undecided && w.next[namespace] == nil { // it may not have been reached
			w.next[namespace] = first
		}
	}
	l.jobs, l.reserved, l.from = waiting, w.reserved, w.next
	return undecided
}

// isPostponed reports whether a Job isn't looked at in this walk: the last one has looked at it, or
// the next one will.
func (w *walk) isPostponed(job *Job, from map[string]*Job) bool {
	namespace := job.Key.Namespace
	if first := from[namespace]; first != nil && Compare(job, first) < 0 {
		return true
	}
	if w.next[namespace] != nil {
		return true
	}
	if w.looks.areOver(namespace) {
		w.next[namespace] = job
		w.workers.Postpone(job)
		return true
	}
	w.looks.add(w.looksFor(job))
	return false
}

// hold has a reservation heeded by the Jobs behind it. What is compared for them counts in this
// walk, also where the room is as an earlier one saw it.
func (w *walk) hold(r *Reservation) {
	w.reserved[r.Worker] = r
	r.room.looks = w.looks
	for worker, need := range r.Job.Needs.All() {
		w.claimed[worker] = w.claimed[worker] || need.Lacks == Room
	}
}

// keepOthers keeps the reservations of Jobs that weren't looked at.
func (w *walk) keepOthers(before map[string]*Reservation, jobs []*Job) {
	for worker, r := range before {
		_, left := slices.BinarySearchFunc(jobs, r.Job, Compare)
		if left && w.reserved[worker] == nil {
			w.reserved[worker] = r
		}
	}
}

// try places a Job if one of the changed workers may have room. It heeds the reservations of the
// Jobs before it, which were made in this walk, and avoids those of the ones behind it.
func (w *walk) try(before map[string]*Reservation, job *Job) Outcome {
	ahead, behind := Line{reserved: w.reserved}, Line{reserved: before}
	admits := func(worker string) int64 { return ahead.Admits(job, worker, w.now) }
	if !w.mayGo(job, admits) || w.workers.HadTurn(job) && !w.mayHaveAnother(job, admits) {
		return Outcome{}
	}
	outcome := w.workers.Place(job, admits, func(worker string) bool { return behind.Avoids(job, worker) })
	job.misjudged = outcome.Refused && w.fitsNow(job, admits)
	if outcome.Worker != "" {
		ahead.Take(job, outcome.Worker, job.Pods, w.now)
	}
	return outcome
}

// mayGo reports whether a worker that may help a Job admits it. All are looked at: the Job
// remembers what it misses.
func (w *walk) mayGo(job *Job, admits func(string) int64) (may bool) {
	for worker := range w.changed {
		switch {
		case !w.mayHelp(job, worker):
		case admits(worker) >= job.Least():
			may = true
		default:
			may = may || job.Untold
			job.Miss(worker, w.changed)
		}
	}
	return may
}

// mayHaveAnother reports whether a Job has another turn. One that decides for itself has not: it
// would be asked again as soon as it has decided.
func (w *walk) mayHaveAnother(job *Job, admits func(string) int64) bool {
	return !job.Exempt && !job.Divisible && !job.misjudged && w.fitsNow(job, admits)
}

// fitsNow reports whether a worker that admits a Job has by now what the Job was last found to lack
// there.
func (w *walk) fitsNow(job *Job, admits func(string) int64) bool {
	for worker, need := range job.Needs.All() {
		if need.isHelpedBy(placement.RoomChange|placement.NodesChange) && admits(worker) >= job.Least() {
			if room := w.room(worker); room != nil && room.has(&need, job.Shape) {
				return true
			}
		}
	}
	return false
}
