package packed

import (
	"sync"
	"weak"

	batchv1 "k8s.io/api/batch/v1"
)

// shared has the Jobs that handlers were given last. A handler that is late, after many other
// events, unpacks a Job again.
var shared recent

// recent has Jobs for as long as somebody else has them.
type recent struct {
	mu   sync.Mutex
	last [32]weak.Pointer[unpackedJob]
	next int
}

// unpackedJob is what a Job in the store was unpacked to.
type unpackedJob struct {
	batchv1.Job
	from *Job
}

// job unpacks a Job, if nobody has it unpacked.
func (r *recent) job(from *Job) *batchv1.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.last {
		if u := known.Value(); u != nil && u.from == from {
			return &u.Job
		}
	}
	u := &unpackedJob{from: from}
	from.unpackInto(&u.Job)
	r.last[r.next] = weak.Make(u)
	r.next = (r.next + 1) % len(r.last)
	return &u.Job
}
