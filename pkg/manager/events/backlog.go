package events

import (
	"slices"
	"sync"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// backlog has the events that wait to be written. Namespaces take turns, and of too many events the
// namespace with the most loses its newest, so that one namespace's flood delays and drops no event
// of another.
type backlog struct {
	most int
	// added buffers one: there may be an event to take.
	added chan struct{}

	mu          sync.Mutex
	count       int
	byNamespace map[string][]*eventsv1.Event
	// turns are the namespaces that have events, the next one first.
	turns []string
}

func newBacklog(most int) *backlog {
	return &backlog{most: most, added: make(chan struct{}, 1), byNamespace: map[string][]*eventsv1.Event{}}
}

// add returns the event that is dropped instead; nil: none is.
func (b *backlog) add(event *eventsv1.Event) (dropped *eventsv1.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count >= b.most {
		largest := event.Namespace
		for namespace, events := range b.byNamespace {
			if len(events) > len(b.byNamespace[largest]) {
				largest = namespace
			}
		}
		if largest == event.Namespace {
			return event
		}
		dropped = b.dropNewest(largest)
	}
	if len(b.byNamespace[event.Namespace]) == 0 {
		b.turns = append(b.turns, event.Namespace)
	}
	b.byNamespace[event.Namespace] = append(b.byNamespace[event.Namespace], event)
	b.count++
	wake.Signal(b.added)
	return dropped
}

func (b *backlog) dropNewest(namespace string) *eventsv1.Event {
	events := b.byNamespace[namespace]
	newest := events[len(events)-1]
	b.set(namespace, events[:len(events)-1])
	if len(events) == 1 {
		b.turns = slices.DeleteFunc(b.turns, func(of string) bool { return of == namespace })
	}
	return newest
}

// take returns the event whose turn it is; nil: none waits.
func (b *backlog) take() *eventsv1.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		return nil
	}
	namespace := b.turns[0]
	events := b.byNamespace[namespace]
	b.turns = b.turns[1:]
	b.set(namespace, events[1:])
	if len(events) > 1 {
		b.turns = append(b.turns, namespace)
	}
	return events[0]
}

// set has one event less than before.
func (b *backlog) set(namespace string, events []*eventsv1.Event) {
	b.count--
	b.byNamespace[namespace] = events
	if len(events) == 0 {
		delete(b.byNamespace, namespace)
	}
}

func (b *backlog) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
