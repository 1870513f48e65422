package events

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const quick = 4 * time.Millisecond
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p Pace
	expect := func(when string, least, most time.Duration) {
		t.Helper()
		if got := p.Excess(now); got < least || got > most {
			t.Errorf("%s: %s, want %s to %s", when, got, least, most)
		}
	}
	write := func(times int, d time.Duration) {
		for range times {
			now = now.Add(10 * time.Millisecond)
			p.Took(d, now, nil)
		}
	}
	expect("no write", 0, 0)
	write(1, quick)
	expect("the first write is the quickest", 0, 0)
	write(1, time.Second)
	expect("one slow write among many is little", 0, 15*time.Millisecond)
	write(300, 150*time.Millisecond)
	expect("many slow writes", 130*time.Millisecond, 146*time.Millisecond)
	now = now.Add(5 * time.Second)
	expect("long ago", 0, 2*time.Millisecond)
	write(1, quick)
	expect("quick again", 0, 2*time.Millisecond)
	now = now.Add(5 * time.Second)
	write(1, 300*time.Millisecond)
	expect("one slow write in a quiet time", 50*time.Millisecond, 60*time.Millisecond)
	now = now.Add(2 * time.Second)
	expect("two seconds later", 0, 9*time.Millisecond)
	now = now.Add(5 * time.Second)
	if excess := p.Took(time.Microsecond, now, errors.New("refused")); excess != 0 {
		t.Errorf("refused: %s", excess)
	}
	write(1, quick)
	expect("after a write that was refused at once", 0, time.Millisecond)
	p.Took(10*time.Second, now.Add(time.Second), context.DeadlineExceeded)
	now = now.Add(time.Second)
	expect("after one that took too long", time.Second, 3*time.Second)
	now = now.Add(20 * time.Second)
	write(1, quick)
	now = now.Add(-time.Minute)
	expect("a clock that is set back", 0, 2*time.Millisecond)
}

// A hub that is far away, or has become slow for good, isn't one that is busy.
func TestPaceOfASlowHub(t *testing.T) {
	const far = 60 * time.Millisecond
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p Pace
	if excess := p.Took(far, now, nil); excess != 0 || p.Excess(now) != 0 {
		t.Errorf("%s", excess)
	}
	if excess := p.Took(far+time.Millisecond, now.Add(time.Second), nil); excess > time.Millisecond {
		t.Errorf("%s after one of %s", excess, far)
	}
	now = now.Add(30 * time.Minute)
	if excess := p.Took(2*far, now, nil); excess != 0 {
		t.Errorf("%s, half an hour later", excess)
	}
}
