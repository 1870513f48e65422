package link

import (
	"context"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"
)

// smallAnswer is up to which size, both as it's sent and when it's decoded, any number of a
// worker's answers may be read at the same time. Of larger ones, only one is.
const smallAnswer = 1 << 20

// decodedOfAll bounds what the large answers of all workers take while the manager decodes and
// reads them. Nobody holds any of it while a worker is waited for.
var decodedOfAll = semaphore.NewWeighted(3 * maxDecodedBytes)

// hold is what the large answers to some requests take, from their second MiB on until they have
// been used.
type hold struct {
	// worker has one place, and all is decodedOfAll.
	worker, all *semaphore.Weighted
	// ofAnswer: it ends when the answer's body is closed. Else Hold has made it.
	ofAnswer bool

	mu      sync.Mutex
	alone   bool  // it has the worker's place
	decoded int64 // of all
}

type holdKey struct{ link *Link }

// Hold returns a context for requests whose answers are used until release is called. From the
// first large one on, the worker's other large answers wait for that.
func (l *Link) Hold(ctx context.Context) (held context.Context, release func()) {
	if !l.holdOf(ctx).ofAnswer {
		return ctx, func() {}
	}
	h := &hold{worker: l.large, all: decodedOfAll}
	return context.WithValue(ctx, holdKey{l}, h), h.release
}

// holdOf is the one that Hold has made for a context, or one for a single answer.
func (l *Link) holdOf(ctx context.Context) *hold {
	if h, is := ctx.Value(holdKey{l}).(*hold); is {
		return h
	}
	return &hold{worker: l.large, all: decodedOfAll, ofAnswer: true}
}

// large waits until this is the worker's only large answer.
func (h *hold) large(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone {
		return nil
	}
	err := h.worker.Acquire(ctx, 1)
	h.alone = err == nil
	return err
}

// decodes waits until so many bytes may be decoded. All of the answer has been read.
func (h *hold) decodes(ctx context.Context, bytes int64) error {
	if bytes <= smallAnswer {
		return nil
	}
	if err := h.large(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	more := min(bytes, maxDecodedBytes) - h.decoded
	if more <= 0 {
		return nil
	}
	if err := h.all.Acquire(ctx, more); err != nil {
		return err
	}
	h.decoded += more
	return nil
}

// waits gives back what is of all workers: this one is waited for again.
func (h *hold) waits() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.Release(h.decoded)
	h.decoded = 0
}

// release gives back all.
func (h *hold) release() {
	h.waits()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone {
		h.worker.Release(1)
		h.alone = false
	}
}

// largeReader calls large before it reads more than what is small.
type largeReader struct {
	from  io.Reader
	read  int
	large func() error
}

func (r *largeReader) Read(p []byte) (int, error) {
	if r.read > smallAnswer {
		if err := r.large(); err != nil {
			return 0, err
		}
	}
	n, err := r.from.Read(p)
	r.read += n
	return n, err
}
