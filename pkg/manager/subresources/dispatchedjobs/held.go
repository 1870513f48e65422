package dispatchedjobs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// maxReasons is how many reasons are held.
	maxReasons = 20_000
	// share is which part of the free places a namespace may take.
	share = 4
	// maxListed bounds the Jobs whose newest event is looked for at the start.
	maxListed = 100_000
	// maxIDBytes bounds the name and the UID of a Job.
	maxIDBytes = 253
)

// said is what an event said of a Job of a name.
type said struct {
	reason jobview.Reason
	name   string
}

// read returns what an event says, in the size that may be held: tenants write events, too, and the
// API bounds few of their fields. Only a reason for which a Job can wait has texts.
func read(e *corev1.Event) (of jobview.Subject, says said, ok bool) {
	of, reason, ok := jobview.Read(e)
	if !ok || len(of.UID) > maxIDBytes || len(e.InvolvedObject.Name) > maxIDBytes {
		return of, said{}, false
	}
	if !reason.Waits() {
		reason = jobview.Reason{At: reason.At}
	}
	reason.Message = text.Clean(reason.Message, text.MaxMessage)
	return of, said{reason, e.InvolvedObject.Name}, true
}

// same reports whether users see the same of both.
func (s said) same(as said) bool {
	return s.reason.Reason == as.reason.Reason && s.reason.Message == as.reason.Message
}

// held has reasons up to a number, of which a namespace has a fair share.
type held struct {
	most    int
	reasons map[jobview.Subject]said
	of      map[string]int // namespace
}

func newHeld(most int) held { return held{most, map[jobview.Subject]said{}, map[string]int{}} }

// list takes what events say that are in no order.
func (h *held) list(events []corev1.Event) {
	for i := range events {
		s, says, ok := read(&events[i])
		if before, known := h.reasons[s]; ok && (!known || !says.reason.At.Before(before.reason.At)) {
			h.put(s, says)
		}
	}
}

func (h *held) put(s jobview.Subject, c said) {
	if _, known := h.reasons[s]; !known {
		if share*h.of[s.Namespace] >= h.most-len(h.reasons) {
			return
		}
		h.of[s.Namespace]++
	}
	h.reasons[s] = c
}

func (h *held) remove(s jobview.Subject) {
	if _, known := h.reasons[s]; !known {
		return
	}
	delete(h.reasons, s)
	if h.of[s.Namespace]--; h.of[s.Namespace] == 0 {
		delete(h.of, s.Namespace)
	}
}
