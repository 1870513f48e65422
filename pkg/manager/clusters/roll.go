package clusters

import "sync"

// roll is the list of the workers that there were at the start, and who of them has been taken up.
type roll struct {
	complete chan struct{}

	mu      sync.Mutex
	called  bool
	missing map[string]struct{}
}

func newRoll() *roll { return &roll{complete: make(chan struct{})} }

// call sets who is expected; only the first call counts.
func (r *roll) call(names []string) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.called {
		return false
	}
	r.called = true
	r.missing = map[string]struct{}{}
	for _, name := range names {
		r.missing[name] = struct{}{}
	}
	r.closeIfComplete()
	return true
}

// present ticks a worker off.
func (r *roll) present(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.missing[name]; ok {
		delete(r.missing, name)
		r.closeIfComplete()
	}
}

func (r *roll) closeIfComplete() {
	if len(r.missing) == 0 {
		close(r.complete)
	}
}
