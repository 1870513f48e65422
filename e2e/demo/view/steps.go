package view

import (
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
)

// spinner is a sign of life beside steps that take long.
var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func steps(s state.State, now time.Time) []line {
	var lines []line
	for _, step := range s.Steps {
		mark, st := spinner[now.UnixMilli()/100%int64(len(spinner))], cyan
		switch {
		case step.Failed:
			mark, st = "✗", red
		case step.Done():
			mark, st = "✓", green
		}
		l := line{{indent + mark + " ", st}, {step.Name, plain}, {gap + clock(step.Took(now)), dim}}
		if step.Note != "" {
			l = l.add(gap+step.Note, dim)
		}
		lines = append(lines, l)
	}
	return lines
}
