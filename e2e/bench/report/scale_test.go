package report

import (
	"slices"
	"strings"
	"testing"
)

func TestScale(t *testing.T) {
	var told []string
	s := &Scale{Workers: 10, Jobs: 100, MemoryLimit: "450MiB", Measured: Measured{Told: func(f string) { told = append(told, f) }}}
	s.Add("heap", 3e6, Megabyte, 2e6)
	s.AddNone("needless writes", 0)
	if want := []string{"heap: 3 MB", "needless writes: 0 "}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if missed := s.MissedGoals(); len(missed) != 1 {
		t.Errorf("missed %q, want the heap", missed)
	}
	s.Unfinished = true
	if missed := s.MissedGoals(); len(missed) != 2 {
		t.Errorf("missed %q, want what wasn't measured, too", missed)
	}
	s.NotAtRest = true
	if missed := s.MissedGoals(); len(missed) != 3 {
		t.Errorf("missed %q, want what was measured too early, too", missed)
	}
	var page strings.Builder
	if err := ScaleMarkdown(&page, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GOMEMLIMIT=450MiB", "ended by -time-limit", "before a manager was at rest", "**missed**"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s doesn't say %q", page.String(), want)
		}
	}
}
