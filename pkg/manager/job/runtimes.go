package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/placement/waiting"
)

// runtimes are how long Jobs ran that have completed, by worker and namespace. A worker says when its Jobs ran, so
// that decides about no other worker.
type runtimes map[string]map[string]*waiting.Runtimes

// maxNamespaces bounds those that are remembered of a worker, some 0.6 KB each: of more, any is forgotten.
const maxNamespaces = 1_000

// learn remembers how long a Job ran that has completed, if no other worker had a share in that.
func (r runtimes) learn(job *batchv1.Job, workers []string) {
	started, ended := job.Status.StartTime, job.Status.CompletionTime
	if started == nil || ended == nil || !ended.After(started.Time) || len(workers) != 1 || job.Annotations[v1alpha1.AnnotationMovedFrom] != "" {
		return
	}
	in := r[workers[0]]
	if in == nil {
		in = map[string]*waiting.Runtimes{}
		r[workers[0]] = in
	}
	if in[job.Namespace] == nil {
		if len(in) == maxNamespaces {
			for forgotten := range in {
				delete(in, forgotten)
				break
			}
		}
		in[job.Namespace] = &waiting.Runtimes{}
	}
	in[job.Namespace].Add(ended.Sub(started.Time))
}

// usual is how long a namespace's Jobs run in a worker; zero: too few have completed.
func (r runtimes) usual(worker, namespace string) time.Duration {
	if known := r[worker][namespace]; known != nil {
		return known.Usual()
	}
	return 0
}

// usualRuntime is how long a namespace's Jobs run in a worker; zero: that isn't known.
func (s *store) usualRuntime(worker, namespace string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runtimes.usual(worker, namespace)
}

// usualRuntimes are how long a namespace's Jobs run, by worker.
func (s *store) usualRuntimes(namespace string) map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	usual := make(map[string]time.Duration, len(s.runtimes))
	for worker := range s.runtimes {
		usual[worker] = s.runtimes.usual(worker, namespace)
	}
	return usual
}
