package line

import (
	"sync"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
)

// Runtimes are how long Jobs ran that have completed, by namespace and worker. A worker says when
// its Jobs ran, so that decides about no other worker.
type Runtimes struct {
	mu         sync.Mutex
	namespaces map[string]*namespaceRuntimes
}

// NewRuntimes returns Runtimes of no Job.
func NewRuntimes() *Runtimes { return &Runtimes{namespaces: map[string]*namespaceRuntimes{}} }

type namespaceRuntimes struct {
	workers map[string]*waiting.Runtimes

	// usual has those workers of which enough is known. It's replaced, never changed: others hold it.
	usual map[string]waiting.Usual
}

// These bound what is remembered, some 1.1 KB for each namespace and worker: of more, any is
// forgotten. Of more than maxRuntimes in all, it's one of the namespace that has the most.
const (
	maxRuntimeNamespaces = 1_000
	maxRuntimeWorkers    = 500
	maxRuntimes          = 20_000
)

// Learn remembers how long a Job ran that has completed, if no other worker had a share in that.
func (r *Runtimes) Learn(job *batchv1.Job, workers []string) {
	started, ended := job.Status.StartTime, job.Status.CompletionTime
	if started == nil || ended == nil || !ended.After(started.Time) || len(workers) != 1 || hubstate.Get(job, hubstate.MovedFrom) != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.namespaces[job.Namespace]
	if in == nil {
		forgetAny(r.namespaces, maxRuntimeNamespaces-1)
		in = &namespaceRuntimes{workers: map[string]*waiting.Runtimes{}}
		r.namespaces[job.Namespace] = in
	}
	worker := workers[0]
	if in.workers[worker] == nil {
		forgetAny(in.workers, maxRuntimeWorkers-1)
		r.makeRoom()
		in.workers[worker] = &waiting.Runtimes{}
	}
	in.workers[worker].Add(started.Time, ended.Sub(started.Time))
	if usual := in.workers[worker].Usual(); usual != in.usual[worker] {
		in.know()
	}
}

// makeRoom forgets what another namespace and worker may take the place of.
func (r *Runtimes) makeRoom() {
	all, largest := 0, &namespaceRuntimes{}
	for _, in := range r.namespaces {
		if all += len(in.workers); len(in.workers) > len(largest.workers) {
			largest = in
		}
	}
	if all >= maxRuntimes {
		forgetAny(largest.workers, len(largest.workers)-1)
		largest.know()
	}
}

// know makes usual anew.
func (n *namespaceRuntimes) know() {
	n.usual = make(map[string]waiting.Usual, len(n.workers))
	for worker, known := range n.workers {
		if usual := known.Usual(); usual.Longest > 0 {
			n.usual[worker] = usual
		}
	}
}

// forget drops what is known of a worker.
func (r *Runtimes) forget(worker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.namespaces {
		if in.workers[worker] != nil {
			delete(in.workers, worker)
			in.know()
		}
	}
}

func forgetAny[V any](all map[string]V, left int) {
	for key := range all {
		if len(all) <= left {
			return
		}
		delete(all, key)
	}
}

// Usual is how long a namespace's Jobs run, by worker; of the others, that isn't known. Only to
// read.
func (r *Runtimes) Usual(namespace string) map[string]waiting.Usual {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.namespaces[namespace]; in != nil {
		return in.usual
	}
	return nil
}
