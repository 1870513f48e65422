package job

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// hubWrites counts the writes to the hub, of placements and statuses, that haven't been answered.
// It has the Jobs looked at whose statuses wait while the hub is busy, in the order of their
// coming, as soon as it's busy no more. So they wait no longer than they must, and nobody asks
// again and again.
type hubWrites struct {
	enqueue func(...types.NamespacedName)

	mu      sync.Mutex
	count   int
	waiting *list.List // of names
	at      map[types.NamespacedName]*list.Element
}

func newHubWrites(enqueue func(...types.NamespacedName)) *hubWrites {
	return &hubWrites{enqueue: enqueue, waiting: list.New(), at: map[types.NamespacedName]*list.Element{}}
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
func (h *hubWrites) end() (next []types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	for len(next) < dispatch.BusyFrom-h.count && h.waiting.Len() > 0 {
		key := h.waiting.Front().Value.(types.NamespacedName)
		h.removeLocked(key)
		next = append(next, key)
	}
	return next
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
		h.removeLocked(key)
		return !waits
	}
	if h.at[key] == nil {
		h.at[key] = h.waiting.PushBack(key)
	}
	return true
}

func (h *hubWrites) removeLocked(key types.NamespacedName) {
	if e := h.at[key]; e != nil {
		h.waiting.Remove(e)
		delete(h.at, key)
	}
}
