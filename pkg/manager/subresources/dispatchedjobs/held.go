package dispatchedjobs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/places"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// maxReasons is how many reasons are held.
	maxReasons = 20_000
	// maxListed bounds the Jobs whose newest event is looked for at the start.
	maxListed = 100_000
	// maxNameBytes bounds the name of a Job.
	maxNameBytes = 253
)

// said is what an event said of a Job of a name.
type said struct {
	reason jobview.Reason
	name   string
}

// read returns what an event says, in the size that may be held: only a reason for which a Job can
// wait has texts.
func read(e *corev1.Event) (of jobview.Subject, says said, ok bool) {
	of, reason, ok := jobview.Read(e)
	if !reason.Waits() {
		reason = jobview.Reason{At: reason.At}
	}
	reason.Message = text.Clean(reason.Message, text.MaxMessage)
	return of, said{reason, e.InvolvedObject.Name}, ok && len(e.InvolvedObject.Name) <= maxNameBytes
}

// same reports whether users see the same of both.
func (s said) same(as said) bool {
	return s.reason.Reason == as.reason.Reason && s.reason.Message == as.reason.Message
}

// held has reasons up to a number, of which namespaces share the places.
type held struct {
	reasons map[jobview.Subject]said
	places  *places.Shared
}

func newHeld() held { return held{map[jobview.Subject]said{}, places.NewShared(maxReasons)} }

func (h *held) put(s jobview.Subject, says said) {
	if _, known := h.reasons[s]; known || h.places.Take(s.Namespace) {
		h.reasons[s] = says
	}
}

func (h *held) remove(s jobview.Subject) {
	if _, known := h.reasons[s]; known {
		delete(h.reasons, s)
		h.places.Give(s.Namespace)
	}
}

// listed has what events say that are in no order.
type listed struct {
	held
	// newest is when the newest event of each Job was, also of those that don't wait: an older one may
	// come later. Namespaces share the places for these times.
	newest map[digest.Digest]int64
	times  *places.Shared
}

func newListed() listed {
	return listed{held: newHeld(), newest: map[digest.Digest]int64{}, times: places.NewShared(maxListed)}
}

func (l *listed) add(events []corev1.Event) {
	for i := range events {
		switch s, says, ok := read(&events[i]); {
		case !ok || !l.isNewest(s, says.reason.At):
		case says.reason.Waits():
			l.put(s, says)
		default:
			l.remove(s)
		}
	}
}

// isNewest reports whether no later event of a Job was listed, and remembers when it was.
func (l *listed) isNewest(of jobview.Subject, at time.Time) bool {
	key, now := digest.Of(of), at.UnixMicro() // of any year
	before, known := l.newest[key]
	if known && now < before || !known && !l.times.Take(of.Namespace) {
		return false
	}
	l.newest[key] = now
	return true
}
