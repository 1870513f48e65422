package clusters

import (
	"sync"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// startup records which of the workers that there were at the start have been registered.
type startup struct {
	complete chan struct{}

	mu      sync.Mutex
	known   bool
	missing map[string]struct{}
}

func newStartup() *startup { return &startup{complete: make(chan struct{})} }

// expect sets which workers are missing; only the first call counts.
func (s *startup) expect(all []v1alpha1.WorkerCluster) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return false
	}
	s.known = true
	s.missing = map[string]struct{}{}
	for i := range all {
		s.missing[all[i].Name] = struct{}{}
	}
	s.closeIfComplete()
	return true
}

func (s *startup) registered(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.missing[name]; ok {
		delete(s.missing, name)
		s.closeIfComplete()
	}
}

func (s *startup) closeIfComplete() {
	if len(s.missing) == 0 {
		close(s.complete)
	}
}

// loadKnown records, once, which workers there were before this process, and which clusters they
// are: otherwise the worker that is reached first could get the cluster of another.
func (r *Registry) loadKnown(all []v1alpha1.WorkerCluster) {
	if !r.startup.expect(all) {
		return
	}
	// Not when the process has started: it may have waited for days to be the leader.
	r.isolation.begin(r.options.Clock.Now())
	for i := range all {
		if uid := all[i].Status.ClusterUID; uid != "" {
			r.identities.record(uid, all[i].Name)
		}
	}
}
