package clusters

import (
	"sync"
	"time"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// writes records what was last written of each WorkerCluster's status, and when. Until the cache
// has it, too, a reconcile would otherwise find the same change and write its event again.
type writes struct {
	mu sync.Mutex
	of map[string]write
}

type write struct {
	at     time.Time
	answer *v1alpha1.WorkerCluster
}

func newWrites() *writes { return &writes{of: map[string]write{}} }

// last is when a status was last written; zero: not by this process.
func (w *writes) last(name string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[name].at
}

// newer is the WorkerCluster as it was written last, or as the cache has it, if that's newer.
func (w *writes) newer(cached *v1alpha1.WorkerCluster) *v1alpha1.WorkerCluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := w.of[cached.Name].answer
	if answer == nil || answer.UID != cached.UID || !ownwrite.Newer(answer, cached) {
		return cached
	}
	return answer.DeepCopy()
}

func (w *writes) record(answer *v1alpha1.WorkerCluster, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[answer.Name] = write{at, answer}
}

func (w *writes) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, name)
}
