package clusters

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// Report sets a condition of a WorkerCluster that another part of the manager observes, such as
// Fenced. It's written with the rest of the status, by the one writer of the list. Report never
// blocks; a worker that was removed is no error. LastTransitionTime and ObservedGeneration needn't
// be set.
func (r *Registry) Report(worker string, c metav1.Condition) {
	c.Message = text.Clean(c.Message, text.MaxMessage) // some are a worker's
	if w, ok := r.Get(worker); ok && w.reports.set(c) {
		r.queue.Add(request(worker))
	}
}

// reports are the conditions reported of one worker, by type.
type reports struct {
	mu     sync.Mutex
	byType map[string]metav1.Condition
}

// set reports whether the condition is another one than before.
func (r *reports) set(c metav1.Condition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, known := r.byType[c.Type]; known && before == c {
		return false
	}
	if r.byType == nil {
		r.byType = map[string]metav1.Condition{}
	}
	r.byType[c.Type] = c
	return true
}

func (r *reports) all() []metav1.Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]metav1.Condition, 0, len(r.byType))
	for _, c := range r.byType {
		all = append(all, c)
	}
	return all
}
