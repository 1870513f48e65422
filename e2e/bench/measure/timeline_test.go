package measure

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func millis(ms ...int) []time.Duration {
	var all []time.Duration
	for _, m := range ms {
		all = append(all, time.Duration(m)*time.Millisecond)
	}
	return all
}

func TestStageOf(t *testing.T) {
	condition := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: kind, Status: status}}
	}
	for name, c := range map[string]struct {
		status batchv1.JobStatus
		want   Stage
	}{
		"nobody touched it": {batchv1.JobStatus{}, Created},
		"active":            {batchv1.JobStatus{Active: 1, Ready: ptr.To[int32](0)}, Started},
		"ready":             {batchv1.JobStatus{Active: 1, Ready: ptr.To[int32](1)}, Ready},
		"counted":           {batchv1.JobStatus{Succeeded: 1}, Counted},
		"decided":           {batchv1.JobStatus{Conditions: condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue)}, Decided},
		"complete":          {batchv1.JobStatus{Succeeded: 1, Conditions: condition(batchv1.JobComplete, corev1.ConditionTrue)}, Complete},
		"not complete":      {batchv1.JobStatus{Succeeded: 1, Conditions: condition(batchv1.JobComplete, corev1.ConditionFalse)}, Counted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := StageOf(&c.status); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestSinceSent(t *testing.T) {
	tl := NewTimeline()
	tl.Saw("a", Created, at(10))
	tl.Saw("a", Started, at(30))
	tl.Saw("b", Complete, at(25)) // first seen when all was over
	tl.Saw("unsent", Created, at(1))
	sent := map[string]time.Time{"a": at(0), "b": at(5), "never seen": at(0)}
	for stage, want := range map[Stage][]time.Duration{
		Created:  millis(10, 20),
		Started:  millis(20, 30),
		Complete: millis(20),
	} {
		if got := slices.Sorted(slices.Values(SinceSent(sent, tl, stage))); !slices.Equal(got, want) {
			t.Errorf("stage %d: got %v, want %v", stage, got, want)
		}
	}
}

func TestLag(t *testing.T) {
	for name, c := range map[string]struct {
		source, follower func(*Timeline)
		want             []time.Duration
	}{
		"each stage counts once": {
			source: func(s *Timeline) {
				s.Saw("a", Started, at(0))
				s.Saw("a", Started, at(5))
				s.Saw("a", Complete, at(20))
			},
			follower: func(f *Timeline) {
				f.Saw("a", Created, at(0))
				f.Saw("a", Started, at(7))
				f.Saw("a", Complete, at(50))
			},
			want: millis(7, 30),
		},
		"a stage that the follower skips is shown by the next": {
			source: func(s *Timeline) {
				s.Saw("a", Started, at(0))
				s.Saw("a", Decided, at(10))
				s.Saw("a", Complete, at(20))
			},
			follower: func(f *Timeline) { f.Saw("a", Created, at(0)); f.Saw("a", Complete, at(30)) },
			want:     millis(10, 20, 30),
		},
		"what the source never showed has no lag": {
			source:   func(s *Timeline) { s.Saw("a", Created, at(0)); s.Saw("a", Complete, at(20)) },
			follower: func(f *Timeline) { f.Saw("a", Started, at(5)); f.Saw("a", Complete, at(21)) },
			want:     millis(1),
		},
		"what the follower never showed is left out": {
			source: func(s *Timeline) {
				s.Saw("a", Started, at(0))
				s.Saw("a", Complete, at(20))
				s.Saw("b", Complete, at(1))
			},
			follower: func(f *Timeline) { f.Saw("a", Created, at(0)); f.Saw("a", Started, at(3)) },
			want:     millis(3),
		},
		"the follower isn't ahead": {
			source:   func(s *Timeline) { s.Saw("a", Started, at(10)) },
			follower: func(f *Timeline) { f.Saw("a", Started, at(9)) },
			want:     millis(0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, follower := NewTimeline(), NewTimeline()
			c.source(source)
			c.follower(follower)
			var got []time.Duration
			for _, d := range Lag(source, follower) {
				got = append(got, d.Took)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAwait(t *testing.T) {
	tl := NewTimeline()
	ended := make(chan error)
	go func() { ended <- tl.Await(t.Context(), 2, Complete) }()
	tl.Saw("a", Complete, at(0))
	tl.Saw("a", Complete, at(1)) // no second Job
	tl.Saw("b", Started, at(1))
	if n := tl.Reached(Complete); n != 1 {
		t.Errorf("%d Jobs are Complete, want 1", n)
	}
	tl.Saw("b", Complete, at(2))
	if err := <-ended; err != nil {
		t.Error(err)
	}
	go func() { ended <- tl.AwaitGone(t.Context()) }()
	for _, job := range []string{"a", "a", "b", "never seen"} {
		tl.Gone(job)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	why := errors.New("the manager ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := NewTimeline().AwaitJob(ctx, "a", Created); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
