package wake

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

const never = time.Duration(0)

func TestSoonest(t *testing.T) {
	for name, row := range map[string]struct {
		all  []time.Duration
		want time.Duration
	}{
		"nothing":                 {nil, never},
		"all never":               {[]time.Duration{never, never}, never},
		"one":                     {[]time.Duration{time.Second}, time.Second},
		"never counts for none":   {[]time.Duration{never, time.Minute, never, time.Second, never}, time.Second},
		"at once":                 {[]time.Duration{time.Second, AtOnce}, AtOnce},
		"overdue is at once":      {[]time.Duration{time.Second, -time.Hour, time.Minute}, AtOnce},
		"nothing is before it":    {[]time.Duration{time.Nanosecond, AtOnce}, AtOnce},
		"the same from all sides": {[]time.Duration{time.Hour, time.Hour}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Soonest(row.all...); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			slices.Reverse(row.all)
			if got := Soonest(row.all...); got != row.want {
				t.Errorf("in reverse order %s, want %s", got, row.want)
			}
		})
	}
}

// A wake-up combined with any other is itself or an earlier one, and never is the neutral one.
func TestLaws(t *testing.T) {
	all := []time.Duration{-time.Hour, -1, never, 1, AtOnce, AtOnce + 1, time.Second, time.Hour}
	for _, a := range all {
		if got := Soonest(a, never); (got == never) != (a == never) || got != Soonest(a) {
			t.Errorf("%s and never: %s", a, got)
		}
		for _, b := range all {
			got := Soonest(a, b)
			if got != Soonest(b, a) || got != Soonest(Soonest(a), b) || got != never && got < AtOnce {
				t.Errorf("%s and %s: %s", a, b, got)
			}
			for _, c := range all {
				if Soonest(got, c) != Soonest(a, Soonest(b, c)) || Soonest(got, c) != Soonest(a, b, c) {
					t.Errorf("%s, %s and %s depend on their grouping", a, b, c)
				}
			}
		}
	}
}

func TestInAndUntil(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct{ wait, in, until time.Duration }{
		{-time.Hour, AtOnce, never},
		{0, AtOnce, never},
		{1, AtOnce, AtOnce},
		{time.Hour, time.Hour, time.Hour},
	} {
		if got := In(row.wait); got != row.in {
			t.Errorf("in %s: %s, want %s", row.wait, got, row.in)
		}
		if got := Until(now.Add(row.wait), now); got != row.until {
			t.Errorf("until %s from now: %s, want %s", row.wait, got, row.until)
		}
	}
	if got := Until(time.Time{}, now); got != never {
		t.Errorf("until no time: %s", got)
	}
}

func TestSignal(t *testing.T) {
	loop := make(chan struct{}, 1)
	Signal(loop)
	Signal(loop) // doesn't wait for the loop
	<-loop
	if len(loop) > 0 {
		t.Error("two signals are more than one")
	}
	if IsClosed(loop) || IsClosed(nil) {
		t.Error("an open channel is closed")
	}
	close(loop)
	if !IsClosed(loop) {
		t.Error("a closed channel is open")
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := Sleep(ctx, 1); err != nil {
		t.Error(err)
	}
	cancel()
	if err := Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
