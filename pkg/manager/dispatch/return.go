package dispatch

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Return is about a Job in a worker that it prefers others to, and whose user wants it to go back.
type Return struct {
	// Due: whether a worker that it prefers has room is to be looked at now. Otherwise it's looked at
	// After some time; zero: when such a worker has more room.
	Due   bool
	After time.Duration
	// For is how long a worker must have had room.
	For time.Duration
}

// goBack has the workers looked at that a Job prefers. One that ends before it could have moved
// stays.
func goBack(s *Snapshot, w *Worker) Plan {
	switch {
	case s.Return == nil || mirror.Suspended(s.Job) || mirror.OutcomeOf(w.Mirror) != mirror.Undecided:
		return Plan{}
	case !s.Return.Due:
		return Plan{After: s.Return.After}
	case s.endsWithin(s.Return.For):
		return Plan{}
	default:
		return Plan{Actions: []Action{GoBack{Leave: w.Name, For: s.Return.For}}}
	}
}

// endsWithin reports whether what is left of the Job takes less than some time, at the pace that it
// has had. The pace is known after its first completion.
func (s *Snapshot) endsWithin(d time.Duration) bool {
	done := s.Job.Status.Succeeded
	if s.Job.Spec.Completions == nil || s.Job.Status.StartTime == nil || done == 0 {
		return false
	}
	left := max(ptr.Deref(s.Job.Spec.Completions, 0)-done, 0)
	each := s.Now.Sub(s.Job.Status.StartTime.Time).Seconds() / float64(done)
	return each*float64(left) < d.Seconds()
}
