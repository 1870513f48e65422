package pods

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// How long no shadow of a Job is created that the hub has refused: at first, and at most.
const (
	refusedFor     = 30 * time.Second
	refusedForMost = 10 * time.Minute
)

// maxRefused bounds the memory: with more Jobs, some are told again.
const maxRefused = 10_000

// refused are the Jobs of which the hub has refused something. Each is told once.
type refused struct {
	mu   sync.Mutex
	jobs map[types.UID]refusal
}

type refusal struct {
	until time.Time
	wait  time.Duration
}

// tell tells of a Job, unless that was told, and returns how long to wait before the next try: so
// long at first, and then longer.
func (r *refused) tell(job *batchv1.Job, now time.Time, wait time.Duration, tell func()) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, told := r.jobs[job.UID]
	if !told {
		tell()
	}
	if r.jobs == nil || len(r.jobs) >= maxRefused {
		r.jobs = map[types.UID]refusal{}
	}
	if told && now.Before(before.until) {
		return before.until.Sub(now)
	}
	if wait > 0 {
		wait = min(max(2*before.wait, wait), refusedForMost)
	}
	r.jobs[job.UID] = refusal{now.Add(wait), wait}
	return wait
}

// left is how long no shadow of a Job is created.
func (r *refused) left(job types.UID, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.jobs[job].until.Sub(now), 0)
}

// requestsToOne is how many requests to one worker are under way at a time.
const requestsToOne = 2

// busy has the Pods for which a request to their worker is under way.
type busy struct {
	mu      sync.Mutex
	workers map[string]sets.Set[types.NamespacedName]
}

func (b *busy) begin(worker string, pod types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers == nil {
		b.workers = map[string]sets.Set[types.NamespacedName]{}
	}
	if b.workers[worker] == nil {
		b.workers[worker] = sets.Set[types.NamespacedName]{}
	}
	if pods := b.workers[worker]; len(pods) >= requestsToOne || pods.Has(pod) {
		return false
	}
	b.workers[worker].Insert(pod)
	return true
}

func (b *busy) end(worker string, pod types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers[worker].Delete(pod); len(b.workers[worker]) == 0 {
		delete(b.workers, worker)
	}
}
