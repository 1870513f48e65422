package feed

import "sync"

// maxBacklog bounds a backlog, in bytes of slim objects: thousands of common events.
const maxBacklog = 4 << 20

// backlog is what a watch has passed on, and a fanOut hasn't taken. The queue between them, which
// is client-go's, bounds the events, not their bytes. It's no semaphore: events are taken, too,
// that came while all were listed, and weren't added.
type backlog struct {
	mu    sync.Mutex
	bytes int64
	less  chan struct{} // closed when there is less; nil: nobody waits
}

// add waits until there is room; one that is larger than all takes it all. False: done was closed
// meanwhile.
func (b *backlog) add(size int64, done <-chan struct{}) bool {
	for {
		less, added := b.tryAdd(size)
		if added {
			return true
		}
		select {
		case <-less:
		case <-done:
			return false
		}
	}
}

func (b *backlog) tryAdd(size int64) (less <-chan struct{}, added bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size = min(size, maxBacklog)
	if b.bytes+size <= maxBacklog {
		b.bytes += size
		return nil, true
	}
	if b.less == nil {
		b.less = make(chan struct{})
	}
	return b.less, false
}

// remove takes out what was taken.
func (b *backlog) remove(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes = max(b.bytes-size, 0)
	if b.less != nil {
		close(b.less)
		b.less = nil
	}
}
