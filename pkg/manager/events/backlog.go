package events

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// backlog has the events that wait to be written. Namespaces take turns, and if the events take too
// much memory, the namespace whose events take the most loses its newest, so that one namespace's
// flood delays and drops no event of another.
type backlog struct {
	most int // bytes
	// added buffers one: there may be an event to take.
	added chan struct{}

	mu          sync.Mutex
	count       int
	bytes       int
	byNamespace map[string]*waiting
	// turns are the namespaces that have events, the next one first.
	turns []string
}

// waiting are the events of a namespace.
type waiting struct {
	events []*queued
	bytes  int
	// last is the newest event about each object.
	last map[types.UID]*queued
}

// queued is an event, and since when it, or one that it replaced, waits.
type queued struct {
	*eventsv1.Event
	since time.Time
}

func newBacklog(most int) *backlog {
	return &backlog{most: most, added: make(chan struct{}, 1), byNamespace: map[string]*waiting{}}
}

// bytesOf is about what an event takes, with its place in a slice and a map. Its names are the
// Job's own.
func bytesOf(event *eventsv1.Event) int {
	const place = 128
	return int(unsafe.Sizeof(*event)) + place + len(event.Name) + len(event.Note)
}

// add returns how many events are dropped for it, or itself. What a Job waits for now takes the
// place of what it waited for before, if that hasn't been written.
func (b *backlog) add(event *eventsv1.Event, now time.Time) (dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.byNamespace[event.Namespace]
	if own == nil {
		own = &waiting{last: map[types.UID]*queued{}}
	}
	if last := own.last[event.Regarding.UID]; last != nil && last.Reason == event.Reason && (jobview.Reason{Reason: event.Reason}).Waits() {
		b.grow(own, bytesOf(event)-bytesOf(last.Event))
		last.Event = event
		return 0
	}
	for ; b.bytes+bytesOf(event) > b.most; dropped++ {
		largest, most := "", own.bytes
		for namespace, w := range b.byNamespace {
			if w.bytes > most {
				largest, most = namespace, w.bytes
			}
		}
		if largest == "" {
			return dropped + 1
		}
		b.dropNewest(largest)
	}
	if len(own.events) == 0 {
		b.byNamespace[event.Namespace] = own
		b.turns = append(b.turns, event.Namespace)
	}
	q := &queued{event, now}
	own.events, own.last[event.Regarding.UID] = append(own.events, q), q
	b.count++
	b.grow(own, bytesOf(event))
	wake.Signal(b.added)
	return dropped
}

func (b *backlog) grow(w *waiting, by int) { b.bytes, w.bytes = b.bytes+by, w.bytes+by }

func (b *backlog) dropNewest(namespace string) {
	w := b.byNamespace[namespace]
	last := len(w.events) - 1
	newest := w.events[last]
	w.events[last] = nil // the slice stays
	b.remove(namespace, newest, w.events[:last])
	if last == 0 {
		b.turns = slices.DeleteFunc(b.turns, func(of string) bool { return of == namespace })
	}
}

// take returns the event whose turn it is, and since when it waits; nil: none waits since then.
func (b *backlog) take(before time.Time) (*eventsv1.Event, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		return nil, time.Time{}
	}
	namespace := b.turns[0]
	w := b.byNamespace[namespace]
	first := w.events[0]
	if first.since.After(before) {
		return nil, time.Time{}
	}
	b.turns = b.turns[1:]
	w.events[0] = nil // the slice stays
	b.remove(namespace, first, w.events[1:])
	if len(w.events) > 0 {
		b.turns = append(b.turns, namespace)
	}
	return first.Event, first.since
}

// remove takes an event away, which leaves others.
func (b *backlog) remove(namespace string, event *queued, left []*queued) {
	w := b.byNamespace[namespace]
	w.events = left
	if w.last[event.Regarding.UID] == event {
		delete(w.last, event.Regarding.UID)
	}
	b.count--
	b.grow(w, -bytesOf(event.Event))
	if len(left) == 0 {
		delete(b.byNamespace, namespace)
	}
}

func (b *backlog) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
