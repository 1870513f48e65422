package demo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// recorder is a display that keeps what it was shown.
type recorder struct {
	mu    sync.Mutex
	shown []string // the note of the first step
	pause time.Duration
}

func (r *recorder) Show(s state.State, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	note := ""
	if len(s.Steps) > 0 {
		note = s.Steps[0].Note
	}
	if !slices.Contains(r.shown, note) {
		r.shown = append(r.shown, note)
	}
}

func (r *recorder) Pause() time.Duration { return r.pause }
func (*recorder) Close()                 {}

func TestBoardShowsTheLastState(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Hour} {
		b, r := newBoard(state.New(time.Now(), nil)), &recorder{pause: pause}
		ctx, cancel := context.WithCancel(t.Context())
		var showing sync.WaitGroup
		showing.Go(func() { b.show(ctx, r) })
		b.update(func(s *state.State) { s.StepBegan("step", "begun", time.Now()) })
		b.update(func(s *state.State) { s.StepNote("step", "last") })
		cancel()
		showing.Wait()
		if last := r.shown[len(r.shown)-1]; last != "last" {
			t.Errorf("pause %s: shown are %q", pause, r.shown)
		}
	}
}

func TestUntil(t *testing.T) {
	b := newBoard(state.New(time.Now(), nil))
	begun := func(s *state.State) bool { return len(s.Steps) > 0 }
	var waiting sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		waiting.Go(func() { errs[i] = b.until(t.Context(), begun) })
	}
	b.update(func(*state.State) {})
	b.update(func(s *state.State) { s.StepBegan("step", "", time.Now()) })
	waiting.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(because)
	if err := b.until(ctx, func(*state.State) bool { return false }); !errors.Is(err, because) {
		t.Errorf("ended by %v", err)
	}
}

func TestParseJobController(t *testing.T) {
	for in, want := range map[string]v1alpha1.JobController{
		"": "BuiltIn", "builtin": "BuiltIn", "BuiltIn": "BuiltIn", "embedded": "Embedded", "other": "",
	} {
		got, err := ParseJobController(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
