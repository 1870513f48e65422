package view

import "github.com/jobferry/jobferry/e2e/demo/state"

// news are the latest events, as many as there is room for.
func news(s state.State, room int) []line {
	if room < 1 || len(s.News) == 0 {
		return nil
	}
	lines := []line{{}, styled(indent+"EVENTS ON THE HUB'S JOBS", dim)}
	for _, n := range s.News[max(0, len(s.News)-room):] {
		st := cyan
		if n.Warning {
			st = yellow
		}
		l := text(indent + clock(n.At.Sub(s.Began)) + gap)
		lines = append(lines, l.add(n.Job, bold).add(gap, plain).add(n.Reason, st).add(gap+n.Note, plain))
	}
	return lines
}
