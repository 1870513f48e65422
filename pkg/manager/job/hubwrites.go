package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/turns"
)

// hubWrites knows the writes to the hub, of placements and statuses, that haven't been answered.
// It has the Jobs looked at whose statuses wait while the hub is busy, by turns, as soon as it's
// busy no more. So they wait no longer than they must, and nobody asks again and again.
type hubWrites struct {
	enqueue func(...types.NamespacedName)

	mu sync.Mutex
	// underway has for the Job of each write the version that the watch has shown since; empty: none.
	underway map[types.NamespacedName]string
	waiting  *turns.Queue
}

// hubWrite is a write to a hub Job. One of each Job is under way at a time.
type hubWrite struct {
	of  *hubWrites
	key types.NamespacedName
	// answer is the version that the hub has answered; empty: it hasn't, or nothing may rest on it.
	answer string
}

func newHubWrites(enqueue func(...types.NamespacedName)) *hubWrites {
	return &hubWrites{enqueue: enqueue, underway: map[types.NamespacedName]string{}, waiting: turns.NewQueue()}
}

func (h *hubWrites) inFlight() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.underway)
}

// begin counts a write until its end.
func (h *hubWrites) begin(key types.NamespacedName) *hubWrite {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underway[key] = ""
	return &hubWrite{of: h, key: key}
}

// saw reports whether the version that the watch shows may come from a write that is under way.
// Then the write's end has the Job looked at if it doesn't.
func (h *hubWrites) saw(key types.NamespacedName, version string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, is := h.underway[key]
	if is {
		h.underway[key] = version
	}
	return is
}

// end has as many of the Jobs that wait looked at as may write until the hub is busy again. It
// reports whether the watch has shown the answer, and nothing else since.
func (w *hubWrite) end() (isShown bool) {
	next, isShown := w.of.end(w)
	if len(next) > 0 {
		w.of.enqueue(next...)
	}
	return isShown
}

func (h *hubWrites) end(w *hubWrite) (next []types.NamespacedName, isShown bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.underway[w.key]
	delete(h.underway, w.key)
	next = h.waiting.Next(dispatch.BusyFrom - len(h.underway))
	switch seen {
	case "":
		return next, false
	case w.answer:
		return next, true
	default:
		return append(next, w.key), false
	}
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
	if !waits || !dispatch.IsBusy(len(h.underway)) {
		h.waiting.Remove(key)
		return !waits
	}
	h.waiting.Add(key)
	return true
}
