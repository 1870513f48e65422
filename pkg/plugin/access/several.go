package access

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/util/workqueue"
)

// atOnce bounds the requests about one Job in flight.
const atOnce = 8

// PodsOf returns the Pods of the Job in these workers.
func (s *Subresources) PodsOf(ctx context.Context, workers []string) (*PodList, error) {
	return ofAll(ctx, workers, s.Pods)
}

// EventsOf returns the events of the Job in these workers.
func (s *Subresources) EventsOf(ctx context.Context, workers []string) (*EventList, error) {
	return ofAll(ctx, workers, s.Events)
}

// MirrorsOf returns the Job as it is in these workers, and why it can't be read in others.
func (s *Subresources) MirrorsOf(ctx context.Context, workers []string) (mirrors map[string]*batchv1.Job, problems []string) {
	found, errs := askEach(ctx, workers, s.Mirror)
	mirrors = map[string]*batchv1.Job{}
	for i, worker := range workers {
		if errs[i] != nil {
			problems = append(problems, errs[i].Error())
		} else {
			mirrors[worker] = found[i]
		}
	}
	return mirrors, problems
}

// ofAll returns the objects of workers, with warnings why others haven't answered; an error, if
// none has.
func ofAll[T any](ctx context.Context, workers []string, ask func(context.Context, string) (*List[T], error)) (*List[T], error) {
	if len(workers) < 2 {
		return ask(ctx, first(workers))
	}
	all, warnings := &List[T]{}, []string(nil)
	answers, errs := askEach(ctx, workers, ask)
	for i, answer := range answers {
		if errs[i] != nil {
			warnings = append(warnings, errs[i].Error())
			continue
		}
		all.ListMeta = answer.ListMeta
		all.Items = append(all.Items, answer.Items...)
		all.Warnings = append(all.Warnings, answer.Warnings...)
	}
	if len(warnings) == len(workers) {
		return nil, errors.Join(errs...)
	}
	all.Warnings = append(all.Warnings, warnings...)
	return all, nil
}

// askEach asks workers at the same time: one that doesn't answer holds up no other.
func askEach[T any](ctx context.Context, workers []string, ask func(context.Context, string) (T, error)) (answers []T, errs []error) {
	answers, errs = make([]T, len(workers)), slices.Repeat([]error{context.Canceled}, len(workers))
	ctx = context.WithValue(ctx, allowanceKey{}, newAllowance(len(workers)))
	workqueue.ParallelizeUntil(ctx, atOnce, len(workers), func(i int) {
		answers[i], errs[i] = ask(ctx, workers[i])
	})
	return answers, errs
}

// maxAnswer is how much is read of an answer: a Job's 100,000 Pods take about that.
const maxAnswer = 64 << 20

var errLongAnswer = errors.New("an answer is too long")

// allowance bounds the answers of several workers, which are held at the same time, to twice
// maxAnswer together. Each has its share of maxAnswer, and beyond that what others leave of as much
// again: no worker takes the share of another, and one that has nearly all Pods may say so.
type allowance struct {
	share int64
	rest  atomic.Int64
}

type allowanceKey struct{}

func newAllowance(workers int) *allowance {
	a := &allowance{share: maxAnswer / int64(max(workers, 1))}
	a.rest.Store(maxAnswer - a.share)
	return a
}

// within returns a reader that fails with errLongAnswer.
func within(ctx context.Context, answer io.Reader) io.Reader {
	a, ofSeveral := ctx.Value(allowanceKey{}).(*allowance)
	if !ofSeveral {
		a = newAllowance(1)
	}
	return &boundedAnswer{answer, a, a.share}
}

type boundedAnswer struct {
	from io.Reader
	*allowance
	left int64 // of the share; negative: what is taken of the rest
}

// Read implements io.Reader.
func (b *boundedAnswer) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if beyond := min(int64(n), -b.left); beyond > 0 && b.rest.Add(-beyond) < 0 {
		return 0, errLongAnswer
	}
	return n, err //nolint:wrapcheck // it's the reader's own
}

func first(workers []string) string {
	if len(workers) == 0 {
		return "" // all
	}
	return workers[0]
}
