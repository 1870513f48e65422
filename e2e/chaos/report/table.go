package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// Table prints the figures.
func Table(out io.Writer, r *Result) error {
	faults, losing := map[schedule.Kind]int{}, 0
	for _, f := range r.Faults {
		faults[f.Kind]++
		if f.Loses {
			losing++
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	row("seed", r.Seed)
	row("time", r.Took.Round(time.Second))
	row("Jobs", r.Jobs)
	row("faults", len(r.Faults))
	for _, kind := range schedule.Kinds() {
		if n := faults[kind]; n > 0 {
			row("  "+string(kind), n)
		}
	}
	row("of them, for longer than it takes to be lost", losing)
	row("Jobs moved, moves", fmt.Sprintf("%d, %d", r.Figures.Moved, r.Figures.Moves))
	row("indexes run again, as their worker was lost before it could tell", r.Figures.Reruns)
	row("indexes run twice at once by Kubernetes' own Job controller", r.Figures.Twins)
	row("Jobs in two places at once, without a working fence", r.Figures.Excused)
	row("account", account(r.Ledger))
	row("  without unknown time", fmt.Sprintf("%d of %d Jobs", r.Ledger.Exact, r.Ledger.Jobs))
	row("lost", r.count(checker.Lost, checker.Vanished))
	row("duplicated", r.count(checker.Twice, checker.Again))
	row("orphans", r.count(checker.Orphan))
	row("silent", r.count(checker.Silent))
	row("violations, those included", len(r.Violations))
	if err := w.Flush(); err != nil {
		return err
	}
	return accounts(out, r)
}

// account is what Pods say, and what the hub says of them.
func account(l checker.Ledger) string {
	return fmt.Sprintf("Pods ran for %.1f s (%.1f to %.1f s, as clocks were set), the accounts say %.1f s (%+.3f%%), and up to %.1f s unknown",
		l.Pods, l.Least, l.Most, l.Accounted, 100*(l.Accounted-l.Pods)/max(l.Pods, 1), l.Unknown)
}

// accounts prints the Jobs whose accounts differ from their Pods.
func accounts(out io.Writer, r *Result) error {
	for _, d := range r.Ledger.Differing {
		if _, err := fmt.Fprintf(out, "  %s\n", d); err != nil {
			return err
		}
	}
	return nil
}

// around is how much of the time before a Job's first line, and after its last, its faults are
// shown for.
const around = 5 * time.Second

// TimeLines prints, for each Job with violations, what happened, when and where.
func TimeLines(out io.Writer, r *Result, most int) error {
	shown := map[string]bool{}
	for _, v := range r.Violations {
		if shown[v.Job] || len(shown) == most {
			continue
		}
		shown[v.Job] = true
		if err := timeLine(out, r, v); err != nil {
			return err
		}
	}
	return nil
}

func timeLine(out io.Writer, r *Result, v checker.Violation) error {
	lines := r.Lines(v.Job)
	if len(lines) == 0 {
		_, err := fmt.Fprintf(out, "\n%s\n", v)
		return err
	}
	first, last := lines[0].At-around, lines[len(lines)-1].At+around
	for _, t := range r.Troubles(first, last) {
		lines = insert(lines, checker.Line{At: t.From, Who: "FAULT", Text: t.Fault.String()})
		if t.Fault.For > 0 && t.To != checker.Forever {
			lines = insert(lines, checker.Line{At: t.To, Who: "healed", Text: t.Fault.String()})
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n", v.Job)
	for _, l := range lines {
		fmt.Fprintf(&text, "  %s\n", l)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// insert puts a line where it belongs by its time.
func insert(lines []checker.Line, l checker.Line) []checker.Line {
	i := 0
	for i < len(lines) && lines[i].At <= l.At {
		i++
	}
	return append(lines[:i:i], append([]checker.Line{l}, lines[i:]...)...)
}
