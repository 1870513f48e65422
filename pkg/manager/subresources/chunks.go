package subresources

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// chunkShrinks is by what the size of a chunk is divided if it's too large.
	chunkShrinks = 8
	// maxContinueBytes bounds where the next chunk begins, which API servers say in some hundred.
	maxContinueBytes = 8 << 10
)

// chunks lists objects of a Job's namespace in a worker, chunk by chunk: the manager doesn't hold
// all of them in memory.
type chunks[L interface {
	runtime.Object
	metav1.ListInterface
}] struct {
	*location
	what string // is listed, for errors
	list func(context.Context, metav1.ListOptions) (L, error)
	// more reports whether one more request may be made.
	more func() bool
	// do is called with each chunk, which is held until it returns.
	do func(L) error
}

// each reads from the first chunk on. It returns false if more has ended it.
func (c chunks[L]) each(ctx context.Context, options metav1.ListOptions) (complete bool, err error) {
	for c.more() {
		next, err := c.one(ctx, options)
		switch {
		case errors.Is(err, errTooLarge): // large objects: fewer at a time
			options.Limit = max(options.Limit/chunkShrinks, 1)
		case err != nil:
			return false, err
		case next == "":
			return true, nil
		default:
			options.Continue = next
		}
	}
	return false, nil
}

// one reads one chunk, and returns where the next one begins. It returns errTooLarge if fewer
// objects at a time may do.
func (c chunks[L]) one(ctx context.Context, options metav1.ListOptions) (next string, err error) {
	chunk, done, err := read(ctx, c.link, c.job.Namespace, c.timeout, func(ctx context.Context) (L, error) {
		return c.list(ctx, options)
	})
	defer done()
	// A worker may send more than it was asked for.
	if err == nil && (meta.LenList(chunk) > int(options.Limit) || len(chunk.GetContinue()) > maxContinueBytes) {
		err = errTooLarge
	}
	switch {
	case errors.Is(err, errTooLarge) && options.Limit > 1:
		return "", errTooLarge
	case err != nil:
		return "", fromWorker(c.worker, "listing "+c.what, err)
	}
	return chunk.GetContinue(), c.do(chunk)
}
