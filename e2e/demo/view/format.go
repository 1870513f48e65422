package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// clock shows a duration as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(max(0, d).Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// took shows how long something took: seconds up to two minutes, with a tenth if that says
// something.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < 10*time.Second && d%time.Second != 0:
		return d.Round(100 * time.Millisecond).String()
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Round(time.Second).Seconds())) + "s"
	}
	return d.Round(time.Second).String()
}

// cores shows thousandths of a core, at most one digit after the point.
func cores(milli int64) string {
	return strings.TrimSuffix(strconv.FormatFloat(float64(milli)/1000, 'f', 1, 64), ".0")
}

// bar is a progress bar of the given width in three parts: what is done, what is under way, and the
// rest. What is under way has a cell at least.
func bar(done, active, of int32, width int) (full, busy, rest string) {
	cells := func(n int32) int {
		return min(width, int(int64(n)*int64(width)/int64(max(of, 1))))
	}
	end := cells(done + active)
	if active > 0 {
		end = min(width, max(end, cells(done)+1))
	}
	n := cells(done)
	return strings.Repeat("█", n), strings.Repeat("▒", end-n), strings.Repeat("░", width-end)
}

// phaseStyle is the colour of a Job's phase.
func phaseStyle(j state.Job) style {
	switch {
	case j.Phase.Ended() && len(j.Problems()) > 0:
		return red
	case j.Phase.Ended():
		return green
	case j.Phase.Is(jobview.Running):
		return cyan
	case j.Phase == state.Absent:
		return dim
	}
	return yellow
}

// condition is what the hub says about a Job: the phase, and the terminal reason or the conditions
// on the way to it.
func condition(j state.Job) string {
	switch {
	case j.Phase.Is(jobview.Failed):
		return fmt.Sprintf("%s (%s)", j.Phase, j.Reason)
	case j.Phase.Ended() || j.Conditions == "":
		return string(j.Phase)
	}
	return fmt.Sprintf("%s (%s)", j.Phase, j.Conditions)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
