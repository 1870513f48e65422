package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/turns"
)

// hubWrites counts the writes to the hub, of placements and statuses, that haven't been answered.
// It has the Jobs looked at whose statuses wait while the hub is busy, by turns, as soon as it's
// busy no more. So they wait no longer than they must, and nobody asks again and again.
type hubWrites struct {
	enqueue func(...types.NamespacedName)

	mu      sync.Mutex
	count   int
	waiting *turns.Queue
}

func newHubWrites(enqueue func(...types.NamespacedName)) *hubWrites {
	return &hubWrites{enqueue: enqueue, waiting: turns.NewQueue()}
}

func (h *hubWrites) inFlight() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// begin counts a write until end is called.
func (h *hubWrites) begin() (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	return func() {
		if next := h.end(); len(next) > 0 {
			h.enqueue(next...)
		}
	}
}

// end returns as many of the Jobs that wait as may write until the hub is busy again.
func (h *hubWrites) end() []types.NamespacedName {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	return h.waiting.Next(dispatch.BusyFrom - h.count)
}

// note takes note of whether a Job waits for the hub. If that isn't busy any more, it has the Job
// looked at at once.
func (h *hubWrites) note(key types.NamespacedName, waits bool) {
	if !h.waitOrDrop(key, waits) {
		h.enqueue(key)
	}
}

// waitOrDrop returns false if the Job waits for a hub that isn't busy.
func (h *hubWrites) waitOrDrop(key types.NamespacedName, waits bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !waits || !dispatch.IsBusy(h.count) {
		h.waiting.Remove(key)
		return !waits
	}
	h.waiting.Add(key)
	return true
}
