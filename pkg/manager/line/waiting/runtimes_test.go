package waiting_test

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
)

// Jobs of one to seven minutes begin together, so that the short ones complete first. Nothing is
// said before the long ones would have completed, either.
func TestUsualRuntime(t *testing.T) {
	var r waiting.Runtimes
	for i := range 7 {
		if r.Add(noon, time.Duration(i+1)*time.Minute); r.Usual() != (waiting.Usual{}) {
			t.Errorf("%d Jobs say %v", i+1, r.Usual())
		}
	}
	if r.Add(noon.Add(time.Hour), time.Minute); r.Usual() != (waiting.Usual{Longest: 7 * time.Minute, From: noon.Add(67 * time.Minute)}) {
		t.Errorf("usual is %v, want the longest, when the eighth could have taken as long", r.Usual())
	}
	for range 64 {
		r.Add(noon, time.Minute)
	}
	if r.Usual() != (waiting.Usual{Longest: time.Minute, From: noon.Add(time.Minute)}) {
		t.Errorf("usual is %v, want that of the last ones", r.Usual())
	}
}

// A worker may say that its Jobs began in any year.
func TestRuntimesOfAnyYear(t *testing.T) {
	for _, year := range []int{1, 1600, 2300, 9999} {
		var r waiting.Runtimes
		began := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 8 {
			r.Add(began, time.Minute)
		}
		if r.Usual().From != began.Add(time.Minute) {
			t.Errorf("year %d: known from %s", year, r.Usual().From)
		}
	}
}

func TestEnds(t *testing.T) {
	seven := waiting.Usual{Longest: 7 * time.Minute, From: noon}
	for _, c := range []struct {
		name          string
		ran, deadline time.Duration
		usual         waiting.Usual
		more          time.Duration
		basis         waiting.Basis
	}{
		{name: "by its deadline", ran: time.Minute, deadline: time.Hour, usual: seven, more: 59 * time.Minute},
		{name: "as others do", ran: 5 * time.Minute, usual: seven, more: 2 * time.Minute, basis: waiting.ByUsual},
		{name: "longer than others", ran: 10 * time.Minute, usual: seven, more: 3 * time.Minute, basis: waiting.ByNothing},
		{name: "a little longer than others", ran: 7 * time.Minute, usual: seven, more: time.Minute, basis: waiting.ByNothing},
		{name: "it has just begun", more: time.Minute, basis: waiting.ByNothing},
		{name: "nothing is known", ran: 5 * time.Minute, more: 5 * time.Minute, basis: waiting.ByNothing},
		{name: "too little is known", ran: 5 * time.Minute, usual: waiting.Usual{Longest: 7 * time.Minute, From: noon.Add(1)}, more: 5 * time.Minute, basis: waiting.ByNothing},
		{name: "beyond its deadline", ran: 2 * time.Hour, deadline: time.Hour, more: 2 * time.Hour, basis: waiting.ByNothing},
	} {
		run := waiting.Run{Started: noon.Add(-c.ran), Deadline: c.deadline}
		if got := run.End(c.usual, noon); got.At.Sub(noon) != c.more || got.Basis != c.basis {
			t.Errorf("%s: it ends in %s, %d, want %s, %d", c.name, got.At.Sub(noon), got.Basis, c.more, c.basis)
		}
	}
}
