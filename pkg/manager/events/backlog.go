package events

import (
	"slices"
	"sync"
	"unsafe"

	eventsv1 "k8s.io/api/events/v1"

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
	events []*eventsv1.Event
	bytes  int
}

func newBacklog(most int) *backlog {
	return &backlog{most: most, added: make(chan struct{}, 1), byNamespace: map[string]*waiting{}}
}

// bytesOf is about what an event takes. Its names are the Job's own.
func bytesOf(event *eventsv1.Event) int {
	return int(unsafe.Sizeof(*event)) + len(event.Name) + len(event.Note)
}

// add returns how many events are dropped for it, or itself.
func (b *backlog) add(event *eventsv1.Event) (dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.byNamespace[event.Namespace]
	if own == nil {
		own = &waiting{}
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
	own.events = append(own.events, event)
	b.count, b.bytes, own.bytes = b.count+1, b.bytes+bytesOf(event), own.bytes+bytesOf(event)
	wake.Signal(b.added)
	return dropped
}

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

// take returns the event whose turn it is; nil: none waits.
func (b *backlog) take() *eventsv1.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		return nil
	}
	namespace := b.turns[0]
	w := b.byNamespace[namespace]
	first := w.events[0]
	b.turns = b.turns[1:]
	w.events[0] = nil // the slice stays
	b.remove(namespace, first, w.events[1:])
	if len(w.events) > 0 {
		b.turns = append(b.turns, namespace)
	}
	return first
}

// remove takes an event away, which leaves others.
func (b *backlog) remove(namespace string, event *eventsv1.Event, left []*eventsv1.Event) {
	w := b.byNamespace[namespace]
	w.events, w.bytes = left, w.bytes-bytesOf(event)
	b.count, b.bytes = b.count-1, b.bytes-bytesOf(event)
	if len(left) == 0 {
		delete(b.byNamespace, namespace)
	}
}

func (b *backlog) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
