package view

import (
	"fmt"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
)

// Result is the table at the end, and a sentence on it; a blank line comes first.
func Result(s state.State, now time.Time, o Options) []string {
	o = o.complete()
	t := table{columns: []column{
		{title: ""}, {title: "job"}, {title: "kind", rank: 3}, {title: "worker"}, {title: "result"}, {title: "expected", rank: 2},
		{title: "succeeded", right: true}, {title: "failed", right: true}, {title: "duration", right: true, rank: 1},
	}}
	for _, j := range s.Jobs {
		mark := styled("✓", green)
		if len(j.Problems()) > 0 {
			mark = styled("✗", red)
		}
		t.rows = append(t.rows, []line{
			mark, styled(j.Name, bold), styled(j.Kind, dim), text(or(j.Cluster, "-")), styled(condition(j), phaseStyle(j)),
			text(string(j.Expect.End)), text(done(j.Succeeded, j)), failedNumber(j.Failed),
			text(took(j.Took(now))),
		})
	}
	t.fit(o.Width)
	lines := append([]line{{}}, t.lines()...)
	lines = append(lines, line{})
	// The sentences may wrap: nothing of them is to be lost.
	return append(render(lines, o), render(verdict(s), Options{Color: o.Color}.complete())...)
}

func verdict(s state.State) []line {
	problems := s.Problems()
	if len(problems) == 0 {
		l := styled(fmt.Sprintf("All %d Jobs ended as they should", len(s.Jobs)), green)
		return []line{l.add(", in the workers; on the hub no Pod ever ran.", plain)}
	}
	lines := []line{styled("Not as it should be:", red)}
	for _, p := range problems {
		lines = append(lines, text("  "+p))
	}
	return lines
}
