// Package places bounds what is done or held at a time. A holder of places leaves some to the
// others. For Places one waits, and not for Shared.
package places

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Places are some places, of which each holder may have a part.
type Places struct {
	all  *semaphore.Weighted
	each int64

	mu sync.Mutex
	of map[string]*holder
}

// holder has places, or waits for one.
type holder struct {
	places *semaphore.Weighted
	uses   int
}

// New returns a number of places, of which each holder may have so many at a time.
func New(all, each int64) *Places {
	return &Places{all: semaphore.NewWeighted(all), each: each, of: map[string]*holder{}}
}

// Acquire waits for a place for a holder, which release frees.
func (p *Places) Acquire(ctx context.Context, name string) (release func(), err error) {
	own := p.open(name)
	if err := own.Acquire(ctx, 1); err != nil {
		p.close(name)
		return nil, fmt.Errorf("no place of %s is free: %w", name, err)
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		own.Release(1)
		p.close(name)
		return nil, fmt.Errorf("no place is free: %w", err)
	}
	return sync.OnceFunc(func() {
		p.all.Release(1)
		own.Release(1)
		p.close(name)
	}), nil
}

func (p *Places) open(name string) *semaphore.Weighted {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[name] == nil {
		p.of[name] = &holder{places: semaphore.NewWeighted(p.each)}
	}
	p.of[name].uses++
	return p.of[name].places
}

func (p *Places) close(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[name].uses--; p.of[name].uses == 0 {
		delete(p.of, name)
	}
}

// Holders is how many have a place, or wait for one.
func (p *Places) Holders() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.of)
}
