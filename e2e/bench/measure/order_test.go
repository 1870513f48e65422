package measure

import (
	"testing"
	"time"
)

func TestOvertaken(t *testing.T) {
	seen := func(order string) *Timeline {
		timeline := NewTimeline()
		for i, job := range order {
			timeline.Saw(string(job), Created, time.Unix(int64(i), 0))
		}
		return timeline
	}
	for name, c := range map[string]struct {
		source string
		in     []string
		want   Places
	}{
		"none":                     {"", []string{""}, Places{}},
		"in order":                 {"abcdef", []string{"abcdef"}, Places{}},
		"the first is the last":    {"abcdef", []string{"bcdefa"}, Places{P99: 5, Most: 5}},
		"one isn't there yet":      {"abcdef", []string{"bcdef"}, Places{}},
		"one is of another source": {"abcdef", []string{"xabcdef"}, Places{}},
	} {
		var followers []*Timeline
		for _, order := range c.in {
			followers = append(followers, seen(order))
		}
		if got := Overtaken(seen(c.source), followers...); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
