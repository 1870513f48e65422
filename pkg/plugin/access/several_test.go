package access

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
)

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestAnswersOfManyWorkers: they take little more together than one may, an endless one takes
// nothing from those of their share, and one that has nearly all isn't refused.
func TestAnswersOfManyWorkers(t *testing.T) {
	workers := strings.Fields(strings.Repeat("w ", 20))
	var read atomic.Int64
	ask := func(answer io.Reader) func(ctx context.Context, worker string) (int64, error) {
		return func(ctx context.Context, _ string) (int64, error) {
			n, err := io.Copy(struct{ io.Writer }{io.Discard}, within(ctx, answer))
			read.Add(n)
			return n, err
		}
	}
	_, errs := askEach(t.Context(), workers, ask(zeros{}))
	for _, err := range errs {
		if !errors.Is(err, errLongAnswer) {
			t.Errorf("an endless answer: %v", err)
		}
	}
	if n := read.Load(); n > 2*maxAnswer {
		t.Errorf("%d MiB are read of all", n>>20)
	}
	ctx := context.WithValue(t.Context(), allowanceKey{}, newAllowance(len(workers)))
	if n, err := ask(io.LimitReader(zeros{}, maxAnswer))(ctx, "large"); err != nil || n != maxAnswer {
		t.Errorf("%d bytes of the largest, %v", n, err)
	}
	if n, err := ask(io.LimitReader(zeros{}, maxAnswer/20))(ctx, "usual"); err != nil || n != maxAnswer/20 {
		t.Errorf("%d bytes of another, %v", n, err)
	}
	if n, err := ask(zeros{})(t.Context(), "alone"); !errors.Is(err, errLongAnswer) || n > maxAnswer {
		t.Errorf("%d bytes of one, %v", n, err)
	}
}
