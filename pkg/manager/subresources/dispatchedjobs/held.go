package dispatchedjobs

import "github.com/jobferry/jobferry/pkg/jobview"

const (
	// maxReasons is how many reasons are held.
	maxReasons = 20_000
	// share is which part of the free places a namespace may take.
	share = 4
	// maxListed bounds the Jobs whose newest event is looked for at the start.
	maxListed = 100_000
)

// said is what an event said of a Job of a name.
type said struct {
	reason jobview.Reason
	name   string
}

// same reports whether users see the same of both.
func (s said) same(as said) bool {
	return s.reason.Reason == as.reason.Reason && s.reason.Message == as.reason.Message
}

// held has the reasons, of which a namespace has a fair share.
type held struct {
	reasons map[jobview.Subject]said
	of      map[string]int // namespace
}

func newHeld() held { return held{map[jobview.Subject]said{}, map[string]int{}} }

func (h *held) put(s jobview.Subject, c said) {
	if _, known := h.reasons[s]; !known {
		if share*h.of[s.Namespace] >= maxReasons-len(h.reasons) {
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
