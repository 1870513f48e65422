package view

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
)

// Limits of the width of a progress bar. There is none if the shortest doesn't fit.
const shortestBar, longestBar = 8, 32

func jobs(s state.State, now time.Time, o Options) []line {
	t := table{columns: []column{
		{title: "job"}, {title: "kind", rank: 5}, {title: "worker"},
		{
			title: "progress", rank: 3, shortest: shortestBar, longest: longestBar,
			draw: func(row, width int) line { return progressBar(s.Jobs[row], width) },
		},
		{title: "done", right: true}, {title: "active", right: true, rank: 1}, {title: "failed", right: true, rank: 2},
		{title: "time", right: true, rank: 4}, {title: "status on the hub"},
	}}
	for _, j := range s.Jobs {
		t.rows = append(t.rows, []line{
			styled(j.Name, bold), styled(j.Kind, dim), text(or(j.Cluster, "-")), nil,
			text(fmt.Sprintf("%d/%d", j.Succeeded, j.Completions)), number(j.Active), failedNumber(j.Failed),
			styled(took(j.Took(now).Truncate(time.Second)), dim), styled(condition(j), phaseStyle(j)),
		})
	}
	t.fit(o.Width)
	return t.lines()
}

func progressBar(j state.Job, width int) line {
	full, rest := bar(j.Succeeded, j.Completions, width)
	if j.Phase == state.Failed {
		return styled(full, green).add(rest, red)
	}
	return styled(full, green).add(rest, dim)
}

func number(n int32) line {
	if n == 0 {
		return styled("0", dim)
	}
	return text(strconv.Itoa(int(n)))
}

// failedNumber marks failed Pods, which may well be part of the plan.
func failedNumber(n int32) line {
	if n == 0 {
		return number(n)
	}
	return styled(strconv.Itoa(int(n)), yellow)
}

func totals(s state.State) line {
	var active, succeeded, failed int32
	for _, j := range s.Jobs {
		active, succeeded, failed = active+j.Active, succeeded+j.Succeeded, failed+j.Failed
	}
	l := text(fmt.Sprintf("%sPods of these Jobs in the workers: %d active, %d succeeded, %d failed; on the hub: ", indent, active, succeeded, failed))
	if n := len(s.HubPods); n > 0 {
		return l.add(strconv.Itoa(n), red)
	}
	return l.add("none", green)
}
