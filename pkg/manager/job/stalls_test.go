package job

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestStalls(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s := &stalls{clock: clock}
	for _, step := range []struct {
		name  string
		after time.Duration
		want  bool
	}{
		{"just started", 0, false},
		{"goes on", signOfLife, false},
		{"is slow", stalledAfter, false},
		{"stood still", stalledAfter + 1, true},
		{"goes on since a moment", 4 * time.Second, true},
		{"stood still again", time.Hour, true},
		{"a while later", 4 * time.Second, true},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if got := s.Recent(); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
	for range doubtFor / signOfLife {
		clock.SetTime(clock.Now().Add(signOfLife))
		s.Recent()
	}
	if s.Recent() {
		t.Error("is in doubt for ever")
	}
}
