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
	if len(workers) < 2 {
		return s.Pods(ctx, first(workers))
	}
	all := &PodList{}
	answers, warnings, err := ofEach(ctx, workers, s.Pods)
	for _, answer := range answers {
		all.ListMeta = answer.ListMeta
		all.Items = append(all.Items, answer.Items...)
		all.Warnings = append(all.Warnings, answer.Warnings...)
	}
	all.Warnings = append(all.Warnings, warnings...)
	return all, err
}

// EventsOf returns the events of the Job in these workers.
func (s *Subresources) EventsOf(ctx context.Context, workers []string) (*EventList, error) {
	if len(workers) < 2 {
		return s.eventsIn(ctx, first(workers))
	}
	all := &EventList{}
	answers, warnings, err := ofEach(ctx, workers, s.eventsIn)
	for _, answer := range answers {
		all.ListMeta = answer.ListMeta
		all.Items = append(all.Items, answer.Items...)
		all.Warnings = append(all.Warnings, answer.Warnings...)
	}
	all.Warnings = append(all.Warnings, warnings...)
	return all, err
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

// ofEach returns the answers of workers, and of the others why they haven't answered; an error, if
// none has.
func ofEach[T any](ctx context.Context, workers []string, ask func(context.Context, string) (T, error)) (answers []T, warnings []string, err error) {
	found, errs := askEach(ctx, workers, ask)
	for i, err := range errs {
		if err != nil {
			warnings = append(warnings, err.Error())
		} else {
			answers = append(answers, found[i])
		}
	}
	if len(answers) == 0 {
		return nil, nil, errors.Join(errs...)
	}
	return answers, warnings, nil
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
