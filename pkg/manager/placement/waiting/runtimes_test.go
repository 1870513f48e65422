package waiting_test

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/placement/waiting"
)

func TestUsualRuntime(t *testing.T) {
	var r waiting.Runtimes
	for i := range 7 {
		if r.Add(time.Duration(i+1) * time.Minute); r.Usual() != 0 {
			t.Errorf("%d Jobs say %s", i+1, r.Usual())
		}
	}
	if r.Add(time.Minute); r.Usual() != 7*time.Minute {
		t.Errorf("usual is %s, want the longest", r.Usual())
	}
	for range 64 {
		r.Add(time.Minute)
	}
	if r.Usual() != time.Minute {
		t.Errorf("usual is %s, want that of the last ones", r.Usual())
	}
}

func TestGuess(t *testing.T) {
	for _, c := range []struct{ ran, usual, more time.Duration }{
		{ran: 0, usual: 0, more: time.Minute},
		{ran: 5 * time.Minute, usual: 0, more: 5 * time.Minute},
		{ran: 5 * time.Minute, usual: 7 * time.Minute, more: 2 * time.Minute},
		{ran: 8 * time.Minute, usual: 7 * time.Minute, more: 8 * time.Minute},
	} {
		if got := waiting.Guess(noon.Add(-c.ran), noon, c.usual).Sub(noon); got != c.more {
			t.Errorf("after %s of usually %s it ends in %s, want %s", c.ran, c.usual, got, c.more)
		}
	}
}
