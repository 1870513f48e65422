package view

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// Limits of the width of a progress bar. There is none if the shortest doesn't fit.
const shortestBar, longestBar = 8, 32

// roomy is the width from which on the conditions have room.
const roomy = 100

func jobs(s state.State, now time.Time, o Options) []line {
	t := table{columns: []column{
		{title: "job"}, {title: "kind", rank: 5}, {title: "worker"},
		{
			title: "progress", rank: 3, shortest: shortestBar, longest: longestBar,
			draw: func(row, width int) line { return progressBar(s.Jobs[row], width) },
		},
		{title: "done", right: true, shortest: widestDone(s)}, {title: "active", right: true, rank: 1}, {title: "failed", right: true, rank: 2},
		{title: "time", right: true, rank: 4}, statusColumn(s, o),
	}}
	for _, j := range s.Jobs {
		t.rows = append(t.rows, []line{
			styled(j.Name, bold), styled(j.Kind, dim), text(or(j.Cluster, "-")), nil,
			text(done(j.Succeeded, j)), number(j.Active), failedNumber(j.Failed),
			styled(took(j.Took(now).Truncate(time.Second)), dim), styled(status(j, o), phaseStyle(j)),
		})
	}
	t.fit(o.Width)
	return t.lines()
}

func done(n int32, j state.Job) string { return fmt.Sprintf("%d/%d", n, j.Completions) }

// widestDone is the width of the widest count when all is done.
func widestDone(s state.State) int {
	w := 0
	for _, j := range s.Jobs {
		w = max(w, width(done(j.Completions, j)))
	}
	return w
}

// statusColumn is wide enough for what will come, so that the other columns keep their places.
func statusColumn(s state.State, o Options) column {
	c := column{title: "status", shortest: width(string(jobview.BackingOff))}
	if o.Width < roomy {
		return c
	}
	c.title, c.shortest = "status on the hub", width("Completing (SuccessCriteriaMet)")
	for _, j := range s.Jobs {
		c.shortest = max(c.shortest, width(j.Expect.String()))
	}
	return c
}

func status(j state.Job, o Options) string {
	if o.Width < roomy {
		return string(j.Phase)
	}
	return condition(j)
}

func progressBar(j state.Job, width int) line {
	full, busy, rest := bar(j.Succeeded, j.Active, j.Completions, width)
	if j.Phase.Is(jobview.Failed) {
		return styled(full, green).add(busy+rest, red)
	}
	return styled(full, green).add(busy, cyan).add(rest, dim)
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
	l := text(fmt.Sprintf("%sPods in the workers: %d active, %d succeeded, %d failed. On the hub: ", indent, active, succeeded, failed))
	if n := len(s.HubPods); n > 0 {
		return l.add(strconv.Itoa(n), red)
	}
	return l.add("none", green)
}
