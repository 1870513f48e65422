package job

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/waiting"
)

// runtimes are how long Jobs ran that have completed, by namespace and worker. A worker says when its Jobs ran, so
// that decides about no other worker.
type runtimes map[string]*namespaceRuntimes

type namespaceRuntimes struct {
	workers map[string]*waiting.Runtimes

	// usual has those workers of which enough is known. It's replaced, never changed: others hold it.
	usual map[string]waiting.Usual
}

// These bound what is remembered, some 1.1 KB for each namespace and worker: of more, any is forgotten.
const (
	maxRuntimeNamespaces = 1_000
	maxRuntimeWorkers    = 500
)

// learn remembers how long a Job ran that has completed, if no other worker had a share in that.
func (r runtimes) learn(job *batchv1.Job, workers []string) {
	started, ended := job.Status.StartTime, job.Status.CompletionTime
	if started == nil || ended == nil || !ended.After(started.Time) || len(workers) != 1 || job.Annotations[v1alpha1.AnnotationMovedFrom] != "" {
		return
	}
	in := r[job.Namespace]
	if in == nil {
		forgetAny(r, maxRuntimeNamespaces-1)
		in = &namespaceRuntimes{workers: map[string]*waiting.Runtimes{}}
		r[job.Namespace] = in
	}
	worker := workers[0]
	if in.workers[worker] == nil {
		forgetAny(in.workers, maxRuntimeWorkers-1)
		in.workers[worker] = &waiting.Runtimes{}
	}
	in.workers[worker].Add(started.Time, ended.Sub(started.Time))
	if usual := in.workers[worker].Usual(); usual != in.usual[worker] {
		in.know()
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
func (r runtimes) forget(worker string) {
	for _, in := range r {
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

// usualRuntimes are how long a namespace's Jobs run, by worker; of the others, that isn't known. Only to read.
func (s *store) usualRuntimes(namespace string) map[string]waiting.Usual {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.runtimes[namespace]; in != nil {
		return in.usual
	}
	return nil
}
