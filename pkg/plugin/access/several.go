package access

import (
	"context"
	"errors"
	"slices"

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
	workqueue.ParallelizeUntil(ctx, atOnce, len(workers), func(i int) {
		answers[i], errs[i] = ask(ctx, workers[i])
	})
	return answers, errs
}

func first(workers []string) string {
	if len(workers) == 0 {
		return "" // all
	}
	return workers[0]
}
