package jobview

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// Reasons are what the last event of each Job says.
type Reasons map[Subject]Reason

// Note takes an event, and reports whether it's the last one of its Job until now. Of its texts, it
// keeps no more than is shown: whoever may write events can make them long.
func (r Reasons) Note(e *corev1.Event) bool {
	of, says, ok := Read(e)
	if before, known := r[of]; !ok || known && says.At.Before(before.At) {
		return false
	}
	r[of] = Reason{text.Clean(says.Reason, text.MaxReason), text.Clean(says.Message, text.MaxMessage), says.At}
	return true
}

// Newest returns what the last event of each Job says.
func Newest(events []corev1.Event) Reasons {
	newest := Reasons{}
	for i := range events {
		newest.Note(&events[i])
	}
	return newest
}

// MaxEarly is how many Jobs that aren't known have a reason: an event may come a moment before its
// Job, and a tenant can write any number about Jobs that never were.
const MaxEarly = 1000

// ReasonsOfKnown are the Reasons of known Jobs, and of MaxEarly others.
type ReasonsOfKnown struct {
	Reasons
	isKnown func(Subject) bool
	// most is at how many those of others are forgotten.
	most int
}

// NewReasonsOfKnown returns those of Jobs of which one is told whether they're known.
func NewReasonsOfKnown(isKnown func(Subject) bool) *ReasonsOfKnown {
	return &ReasonsOfKnown{Reasons{}, isKnown, MaxEarly}
}

// Note is that of Reasons.
func (r *ReasonsOfKnown) Note(e *corev1.Event) bool {
	isLast := r.Reasons.Note(e)
	if len(r.Reasons) > r.most {
		maps.DeleteFunc(r.Reasons, func(of Subject, _ Reason) bool { return !r.isKnown(of) })
		r.most = len(r.Reasons) + MaxEarly
	}
	return isLast
}
