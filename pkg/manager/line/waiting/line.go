package waiting

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
)

// Line has the Jobs that wait, in order, and their reservations. Its zero value is empty.
type Line struct {
	jobs     []*Job
	byKey    map[types.NamespacedName]*Job
	reserved map[string]*Reservation // by worker
	// from are the Jobs that a walk goes on from, by namespace, where the last one ended before.
	from map[string]*Job
}

// Workers is what a walk asks and does.
type Workers interface {
	// Nodes are a worker's, with what is free now; false: every Job fits, or none.
	Nodes(worker string) ([]*placement.Node, bool)
	// Added are the nodes that its autoscaler may add for Pods of a Shape.
	Added(worker string, shape *placement.Shape) []*placement.Node
	// Ends are the expected ends of what runs there, in any order, and EndOf is that of a Job; false:
	// it has no room there.
	Ends(worker string) []End
	EndOf(worker string, job *Job) (End, bool)
	// HadTurn reports whether a Job was tried since what has changed. It's tried again only if it fits
	// by now: those behind it would take the room that has come since.
	HadTurn(job *Job) bool
	// Postpone is told of a Job that the next walk is to go on from: its namespace has had its part of
	// this one.
	Postpone(job *Job)
	// Place tries to place a Job. It must pass over the workers that don't admit the Job's Pods, and
	// takes one that is reserved for a Job behind it only if no other fits. If none does, it updates
	// the Job's Needs.
	Place(job *Job, admits func(worker string) int64, avoid func(worker string) bool) Outcome
}

// Outcome is what became of a Job that was tried.
type Outcome struct {
	// Worker that took the Job; empty: none.
	Worker string
	// Refused: it was judged, and no worker can take it.
	Refused bool
	// Left: whether the Job takes room will be known later. The walk goes on, and keeps the room for
	// it.
	Left bool
	// Undecided: whether the Job takes room will be known later. The walk ends there.
	Undecided bool
}

// Len is how many Jobs wait.
func (l *Line) Len() int { return len(l.jobs) }

// Get returns a Job that waits; nil: it doesn't.
func (l *Line) Get(key types.NamespacedName) *Job { return l.byKey[key] }

// Jobs are all that wait, in order.
func (l *Line) Jobs() iter.Seq[*Job] { return slices.Values(l.jobs) }

// Reservation of a Job; nil: it has none.
func (l *Line) Reservation(job *Job) *Reservation {
	for _, r := range l.reserved {
		if r.Job.UID == job.UID {
			return r
		}
	}
	return nil
}

// Reservations by worker. The caller must not change them.
func (l *Line) Reservations() map[string]*Reservation { return l.reserved }

// Add puts a Job into the line, in place of the one of its name. It reports whether the Job may get
// a reservation by the next walk.
func (l *Line) Add(job *Job) bool {
	l.Remove(job.Key)
	if l.byKey == nil {
		l.byKey = map[types.NamespacedName]*Job{}
	}
	i, _ := slices.BinarySearchFunc(l.jobs, job, Compare)
	l.jobs = slices.Insert(l.jobs, i, job)
	l.byKey[job.Key] = job
	if r := l.Reservation(job); r != nil {
		r.Job = job
		return false
	}
	if job.Exempt || job.Divisible {
		return false
	}
	for worker, need := range job.Needs.All() {
		if need.Lacks == Room && !l.isClaimed(worker, job) {
			return true
		}
	}
	return false
}

// isClaimed reports whether a Job with a reservation that is before another could use a worker.
func (l *Line) isClaimed(worker string, by *Job) bool {
	for _, r := range l.reserved {
		if need, could := r.Job.Needs.Get(worker); could && need.Lacks == Room && Compare(r.Job, by) < 0 {
			return true
		}
	}
	return false
}

// Remove takes a Job out of the line. Its reservation stays until it's released.
func (l *Line) Remove(key types.NamespacedName) *Job {
	job := l.byKey[key]
	if job == nil {
		return nil
	}
	i, _ := slices.BinarySearchFunc(l.jobs, job, Compare)
	l.jobs = slices.Delete(l.jobs, i, i+1)
	delete(l.byKey, key)
	return job
}

// Release ends a Job's reservation and returns it; nil: there is none. The worker has changed for
// those behind it.
func (l *Line) Release(job *Job) *Reservation {
	r := l.Reservation(job)
	if r != nil {
		delete(l.reserved, r.Worker)
	}
	return r
}

// Admits is how many Pods of a Job may start in a worker now without delaying a Job that is before
// it.
func (l *Line) Admits(job *Job, worker string, now time.Time) int64 {
	r := l.reserved[worker]
	if r == nil || job.Exempt || Compare(job, r.Job) <= 0 {
		return Unlimited
	}
	return r.admits(job, now)
}

// Avoids reports whether a worker is reserved for a Job behind this one.
func (l *Line) Avoids(job *Job, worker string) bool {
	r := l.reserved[worker]
	return r != nil && Compare(job, r.Job) < 0
}

// Take counts a Job that starts in a worker.
func (l *Line) Take(job *Job, worker string, pods int64, now time.Time) {
	if r := l.reserved[worker]; r != nil && !job.Exempt && Compare(job, r.Job) > 0 {
		r.take(job, pods, now)
	}
}
