package view

import (
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
)

// Options are what the output can show.
type Options struct {
	// Width and Height of the terminal, in characters. Zero: unlimited.
	Width, Height int
	Color         bool
}

// unlimited stands for a width or height of zero.
const unlimited = 1 << 20

func (o Options) complete() Options {
	if o.Width <= 0 {
		o.Width = unlimited
	}
	if o.Height <= 0 {
		o.Height = unlimited
	}
	return o
}

// news that a frame shows at most.
const newsLines = 8

// Frame is the live picture: no more lines than the terminal has, none wider than it.
func Frame(s state.State, now time.Time, o Options) []string {
	o = o.complete()
	lines := []line{header(s, now, o), {}}
	if s.Preparing() {
		lines = append(lines, steps(s, now)...)
		lines = append(lines, line{})
	}
	if len(s.Workers) > 0 {
		lines = append(lines, workers(s, o)...)
		lines = append(lines, line{})
	}
	if anySubmitted(s) {
		lines = append(lines, jobs(s, now, o)...)
		lines = append(lines, line{}, totals(s))
	}
	lines = append(lines, news(s, min(newsLines, o.Height-len(lines)-2))...)
	return render(lines[:min(len(lines), o.Height)], o)
}

func render(lines []line, o Options) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.render(o.Width, o.Color)
	}
	return out
}

func header(s state.State, now time.Time, o Options) line {
	left, right := indent+"Jobferry demo", clock(now.Sub(s.Began))
	hint := "Ctrl-C ends it and cleans up"
	l := styled(left, bold)
	if o.Width == unlimited || width(left)+len(gap)+width(hint)+len(gap)+width(right) > o.Width {
		return l.add(gap+right, dim)
	}
	middle := gap + hint
	return l.add(middle, dim).add(pad(right, o.Width-width(left)-width(middle)-1, true), plain)
}

func anySubmitted(s state.State) bool {
	for _, j := range s.Jobs {
		if j.Phase != state.Absent {
			return true
		}
	}
	return false
}
