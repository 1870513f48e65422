package packed

import "sync"

// maxRecent is how many bytes the recent Jobs take together, unpacked. Each takes maxUnpacked at
// most.
const maxRecent = 8 << 20

// recently has the recent Jobs: those that were packed last, or unpacked last for who shares them.
// They are held unpacked. Most are read soon, and replaced by another version soon: these are never
// compressed.
var recently recent

type recent struct {
	mu   sync.Mutex
	jobs []*Job // the oldest first
	kib  int
}

// add makes a Job a recent one, in place of the oldest.
func (r *recent) add(j *Job) {
	oldest := r.push(j)
	for _, job := range oldest {
		job.settle()
	}
	clear(oldest)
}

// push returns the Jobs that aren't recent any more.
func (r *recent) push(j *Job) []*Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, j)
	r.kib += int(j.kib)
	n := 0
	for ; r.kib > maxRecent>>10; n++ {
		r.kib -= int(r.jobs[n].kib)
	}
	oldest := r.jobs[:n:n]
	r.jobs = r.jobs[n:]
	return oldest
}
