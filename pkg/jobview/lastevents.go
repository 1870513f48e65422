package jobview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MaxEvents is how many events of a Job are looked at. Jobferry writes some tens in the time for
// which API servers keep them, and a tenant any number.
const MaxEvents = 1000

// LastEvents are the last of the events that are added.
type LastEvents struct {
	events []*corev1.Event
	others int
}

// Add adds an event, which is held.
func (l *LastEvents) Add(e *corev1.Event) {
	if l.events = append(l.events, e); len(l.events) == 2*MaxEvents {
		l.cut()
	}
}

// Get returns the last events, and how many others were added.
func (l *LastEvents) Get() (events []corev1.Event, others int) {
	l.cut()
	events = make([]corev1.Event, len(l.events))
	for i, e := range l.events {
		events[i] = *e
	}
	return events, l.others
}

func (l *LastEvents) cut() {
	if len(l.events) <= MaxEvents {
		return
	}
	slices.SortStableFunc(l.events, func(a, b *corev1.Event) int { return Time(b).Compare(Time(a)) })
	l.others += len(l.events) - MaxEvents
	clear(l.events[MaxEvents:])
	l.events = l.events[:MaxEvents]
}
