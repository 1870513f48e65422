package dispatchedjobs

import (
	"context"
	"sync"
)

// turns bounds how many answers of the hub are held at a time, for all requests and for those of a
// namespace. Further requests wait: those of a namespace for each other first.
type turns struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*namespaceTurns
}

type namespaceTurns struct {
	taken chan struct{}
	users int // that have a turn or wait for one
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxReads), of: map[string]*namespaceTurns{}}
}

// take waits for a turn, which release ends. All namespaces together are one more.
func (t *turns) take(ctx context.Context, namespace string) (release func(), err error) {
	own := t.enter(namespace)
	if err := enter(ctx, own.taken); err != nil {
		t.leave(namespace)
		return nil, err
	}
	if err := enter(ctx, t.all); err != nil {
		<-own.taken
		t.leave(namespace)
		return nil, err
	}
	return func() {
		<-t.all
		<-own.taken
		t.leave(namespace)
	}, nil
}

func enter(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turns) enter(namespace string) *namespaceTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of[namespace]
	if own == nil {
		own = &namespaceTurns{taken: make(chan struct{}, maxReadsOfOne)}
		t.of[namespace] = own
	}
	own.users++
	return own
}

func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.of[namespace]; own.users > 1 {
		own.users--
	} else {
		delete(t.of, namespace)
	}
}
