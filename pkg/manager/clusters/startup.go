package clusters

import (
	"sync"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// startup records which of the workers that there were when this replica began to lead have been
// registered since.
type startup struct {
	complete chan struct{}

	mu      sync.Mutex
	missing map[string]struct{}
}

func newStartup() *startup { return &startup{complete: make(chan struct{})} }

// expect sets which workers are missing. It's called once.
func (s *startup) expect(all []v1alpha1.WorkerCluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = map[string]struct{}{}
	for i := range all {
		s.missing[all[i].Name] = struct{}{}
	}
	s.closeIfComplete()
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
