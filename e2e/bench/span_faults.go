package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// progressEvery is how often a run says how far it is.
const progressEvery = 30 * time.Second

// fault happens to a worker when a share of the indexes has completed.
type fault struct {
	share float64
	do    func(ctx context.Context, view *spanView, job *batchv1.Job) error
}

// faults drains a worker, and cuts another one off, each at its share of the indexes.
func (s *span) faults(ctx context.Context, view *spanView) error {
	all := []fault{{s.options.Drain, s.drain}, {s.options.Lose, s.lose}}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.share, b.share) })
	for _, f := range all {
		if f.share == 0 {
			continue
		}
		job, err := view.await(ctx, func(j *batchv1.Job) bool {
			return float64(j.Status.Succeeded) >= f.share*float64(s.options.Indexes) || hasEnded(j)
		})
		if err != nil {
			return err
		}
		if err := f.do(ctx, view, job); err != nil {
			return err
		}
	}
	return nil
}

func (s *span) drain(ctx context.Context, _ *spanView, job *batchv1.Job) error {
	w, err := s.busiest(job)
	if err != nil {
		return err
	}
	s.options.Progress("%s is drained, after %d indexes", w.Name(), job.Status.Succeeded)
	_, err = s.fleet.hub.Kubectl(ctx, "", "patch", "workercluster", w.Name(), "--type=merge", `--patch={"spec":{"drain":true}}`)
	return err
}

// lose cuts a worker off from the hub. It goes on until its fence closes.
func (s *span) lose(_ context.Context, view *spanView, job *batchv1.Job) error {
	w, err := s.busiest(job)
	if err != nil {
		return err
	}
	s.options.Progress("%s is cut off for good, after %d indexes", w.Name(), job.Status.Succeeded)
	view.pods.Lose(w.Name(), intervals.ParseLenient(job.Status.CompletedIndexes, s.options.Indexes))
	w.Proxy().BlackHole()
	return nil
}

// busiest is the worker that runs most of the Job, of those that are to go on with it.
func (s *span) busiest(job *batchv1.Job) (*site, error) {
	placement, err := shards.Read(job)
	if err != nil {
		return nil, err
	}
	var most shards.Shard
	for _, shard := range placement.Shards {
		if !shard.Stopping && shard.Parallelism > most.Parallelism {
			most = shard
		}
	}
	for _, w := range s.fleet.workers {
		if w.Name() == most.Worker {
			return w, nil
		}
	}
	return nil, fmt.Errorf("no worker runs the Job: %+v", placement)
}

func hasEnded(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed
	})
}

// sampleMemory returns the most memory that the manager has held since it was called.
func (s *span) sampleMemory(ctx context.Context) func() int64 {
	var mu sync.Mutex
	var most int64
	sample := func() {
		if s.manager == nil {
			return
		}
		if u, err := s.manager.Usage(); err == nil {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, u.RSS)
		}
	}
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			sample()
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() int64 {
		sample()
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}

// tellProgress says how far the Job is, until ctx ends.
func (s *span) tellProgress(ctx context.Context, view *spanView, namespace string) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			view.mu.Lock()
			job, divisions, moved := view.job, view.divisions, view.moved
			view.mu.Unlock()
			if job == nil {
				continue
			}
			s.options.Progress("%s: %d completed, %d active, %d divisions, %d indexes moved", namespace, job.Status.Succeeded, job.Status.Active, divisions, moved)
		case <-ctx.Done():
			return
		}
	}
}
