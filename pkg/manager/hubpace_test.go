package manager

import (
	"testing"
	"time"
)

func TestHubPace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var pace hubPace
	expect := func(when string, least, most time.Duration) {
		t.Helper()
		if got := pace.Recent(now); got < least || got > most {
			t.Errorf("%s: %s, want %s to %s", when, got, least, most)
		}
	}
	expect("no write", 0, 0)
	pace.Took(4*time.Millisecond, now)
	expect("the first write counts as a whole", 4*time.Millisecond, 4*time.Millisecond)
	now = now.Add(10 * time.Millisecond)
	pace.Took(time.Second, now)
	expect("one slow write among many is little", 4*time.Millisecond, 20*time.Millisecond)
	for range 300 {
		now = now.Add(10 * time.Millisecond)
		pace.Took(150*time.Millisecond, now)
	}
	expect("many slow writes", 140*time.Millisecond, 150*time.Millisecond)
	now = now.Add(5 * time.Second)
	expect("long ago", 0, 2*time.Millisecond)
	pace.Took(5*time.Millisecond, now)
	expect("quick again", 4*time.Millisecond, 7*time.Millisecond)
	now = now.Add(-time.Minute)
	expect("a clock that is set back", 4*time.Millisecond, 7*time.Millisecond)
}
