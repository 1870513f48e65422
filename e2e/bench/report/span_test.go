package report

import (
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/indexes"
)

func sweep(n int, makespan time.Duration) Sweep {
	return Sweep{Makespan: makespan, Shown: n, Memory: 100 * megabyte,
		Indexes: indexes.Counts{Indexes: n, Once: n, Pods: n, Runs: map[int]int{1: n}}}
}

// goodSpan meets all goals, each by nothing.
func goodSpan() *Span {
	whole := sweep(1000, 100*time.Second)
	return &Span{
		Indexes: 1000, Workers: 5, Parallelism: 40, RunFor: time.Second, Whole: &whole, Spanned: sweep(1000, 115*time.Second),
		Small: 100, SmallMemory: 50 * megabyte,
		Requests: []audit.Count{
			{Kind: audit.Kind{Cluster: "hub", Verb: "patch", Resource: "jobs/status"}, Requests: 50},
			{Kind: audit.Kind{Cluster: "hub", Verb: "create", Resource: "events"}, Requests: 10},
		},
	}
}

func TestGoalsOfSpan(t *testing.T) {
	if missed := MissedOf(goodSpan()); len(missed) > 0 {
		t.Errorf("missed: %v", missed)
	}
	for want, spoil := range map[string]func(*Span){
		"makespan":                   func(s *Span) { s.Spanned.Makespan += time.Second },
		"requests and events":        func(s *Span) { s.Requests[1].Requests++ },
		"memory beyond":              func(s *Span) { s.Spanned.Memory++ },
		"not each index completed":   func(s *Span) { s.Spanned.Indexes.Once-- },
		"not each index completed ":  func(s *Span) { s.Whole.Missed++ },
		"not each index completed  ": func(s *Span) { s.Spanned.Shown-- },
	} {
		s := goodSpan()
		spoil(s)
		if missed := MissedOf(s); len(missed) != 1 || !strings.HasPrefix(missed[0], strings.TrimSpace(want)) {
			t.Errorf("%s: missed %q", want, missed)
		}
	}
}

// What isn't measured is no goal, and is shown as such.
func TestSpanAlone(t *testing.T) {
	s := goodSpan()
	s.Whole, s.Small, s.SmallMemory = nil, 0, 0
	if missed := MissedOf(s); len(missed) > 0 {
		t.Errorf("missed: %v", missed)
	}
	var page strings.Builder
	if err := SpanMarkdown(&page, s); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"| makespan | 115.0 s | - |", "| hub patch jobs/status | 50 | 0 |", "50.0, and 10.0 events", "1000 with 1"} {
		if !strings.Contains(page.String(), line) {
			t.Errorf("%q isn't in\n%s", line, page.String())
		}
	}
}
