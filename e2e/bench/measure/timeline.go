package measure

import (
	"context"
	"sync"
	"time"
)

// Timeline is when the Jobs of one cluster were first seen at their stages. Its methods may be
// called by several goroutines.
type Timeline struct {
	mu      sync.Mutex
	jobs    map[string]*course
	reached [stages]int
	there   int
	changed chan struct{} // closed and replaced with every change
}

// course is the way of one Job.
type course struct {
	// first is when the Job was seen at a stage, or at a later one.
	first [stages]time.Time
	// seen are the stages that were really seen.
	seen  [stages]bool
	stage Stage
	gone  bool
}

// NewTimeline returns an empty Timeline.
func NewTimeline() *Timeline {
	return &Timeline{jobs: map[string]*course{}, changed: make(chan struct{})}
}

// Saw records a Job, by name, as it was at a time. A stage that isn't later than the last one is no
// news.
func (t *Timeline) Saw(job string, stage Stage, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.jobs[job]
	var next Stage
	if c == nil {
		c, next = &course{}, Created
		t.jobs[job] = c
		t.there++
	} else if next = c.stage + 1; stage < next {
		return
	}
	for ; next <= stage; next++ {
		c.first[next] = at
		t.reached[next]++
	}
	c.stage, c.seen[stage] = stage, true
	t.notify()
}

// Gone records that a Job doesn't exist any more.
func (t *Timeline) Gone(job string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.jobs[job]; c != nil && !c.gone {
		c.gone = true
		t.there--
		t.notify()
	}
}

func (t *Timeline) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Await returns when so many Jobs have been seen at a stage or past it, or with the context's
// error.
func (t *Timeline) Await(ctx context.Context, jobs int, stage Stage) error {
	return t.await(ctx, func() bool { return t.reached[stage] >= jobs })
}

// AwaitGone returns when none of the Jobs exists any more, or with the context's error.
func (t *Timeline) AwaitGone(ctx context.Context) error {
	return t.await(ctx, func() bool { return t.there == 0 })
}

// AwaitJob returns when one Job has been seen at a stage or past it, or with the context's error.
func (t *Timeline) AwaitJob(ctx context.Context, job string, stage Stage) error {
	return t.await(ctx, func() bool { return t.jobs[job] != nil && t.jobs[job].stage >= stage })
}

// Reached is the number of Jobs that were seen at a stage or past it.
func (t *Timeline) Reached(stage Stage) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached[stage]
}

// There is the number of Jobs that exist.
func (t *Timeline) There() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.there
}

func (t *Timeline) await(ctx context.Context, holds func() bool) error {
	for {
		t.mu.Lock()
		done, changed := holds(), t.changed
		t.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
