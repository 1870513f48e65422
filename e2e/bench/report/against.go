package report

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Used is what one manager used in a round, for its whole life.
type Used struct {
	Requests, Events       int
	Allocations, Allocated int64
	Heap, PeakMemory       int64
	CPU                    time.Duration
}

// compared is one figure of two programs.
type compared struct {
	name string
	unit Unit
	of   func(r *Round, jobs int) float64
	// noise is the share that rounds of one program differ by at least.
	noise float64
	// told: it's only told, as it depends on what else the machine does.
	told bool
}

// comparisons have the steadiest figures first.
var comparisons = []compared{
	{"requests per Job", Count, func(r *Round, jobs int) float64 { return float64(r.Used.Requests) / float64(jobs) }, 0.02, false},
	{"events per Job", Count, func(r *Round, jobs int) float64 { return float64(r.Used.Events) / float64(jobs) }, 0.02, false},
	{"allocations per Job", Count, func(r *Round, jobs int) float64 { return float64(r.Used.Allocations) / float64(jobs) }, 0.1, false},
	{"allocated per Job", Kilobyte, func(r *Round, jobs int) float64 { return float64(r.Used.Allocated) / float64(jobs) }, 0.1, false},
	{"heap when all are gone", Megabyte, func(r *Round, _ int) float64 { return float64(r.Used.Heap) }, 0.15, false},
	{"peak memory", Megabyte, func(r *Round, _ int) float64 { return float64(r.Used.PeakMemory) }, 0.15, false},
	{"CPU of the manager", Seconds, func(r *Round, _ int) float64 { return r.Used.CPU.Seconds() }, 0.15, false},
	{"CPU of the clusters", Seconds, func(r *Round, _ int) float64 { return r.Flood.CPU.All().Seconds() }, 0.15, false},
	{"all Complete", Seconds, func(r *Round, _ int) float64 { return r.Flood.Complete.Seconds() }, 0.3, true},
}

// pairing is a figure of both programs, in all rounds.
type pairing struct {
	compared
	base, head []float64
}

func (r *Result) pairings() (all []pairing) {
	for _, c := range comparisons {
		a := pairing{compared: c}
		for i := range r.Rounds {
			if value := c.of(&r.Rounds[i], r.Jobs); r.Rounds[i].IsBase {
				a.base = append(a.base, value)
			} else {
				a.head = append(a.head, value)
			}
		}
		slices.Sort(a.base)
		slices.Sort(a.head)
		all = append(all, a)
	}
	return all
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

// spread is how far the rounds of one program are apart, as a share of the median.
func spread(sorted []float64) float64 {
	if median(sorted) == 0 {
		return 0
	}
	return (sorted[len(sorted)-1] - sorted[0]) / median(sorted)
}

// allowed is how much more than the base isn't noticed: what rounds of one program differ by.
func (a *pairing) allowed() float64 { return max(a.noise, spread(a.base), spread(a.head)) }

func (a *pairing) ratio() float64 {
	if median(a.base) == 0 {
		return 1
	}
	return median(a.head) / median(a.base)
}

func (a *pairing) isWorse() bool { return !a.told && a.ratio() > 1+a.allowed() }

// Worse names the figures that are worse than the base's by more than noise: none if there was no
// base.
func Worse(r *Result) (worse []string) {
	if !slices.ContainsFunc(r.Rounds, func(r Round) bool { return r.IsBase }) {
		return nil
	}
	for _, a := range r.pairings() {
		if a.isWorse() {
			worse = append(worse, fmt.Sprintf("%s: %s, with the base %s; the noise is %.0f%%",
				a.name, a.unit.show(median(a.head)), a.unit.show(median(a.base)), 100*a.allowed()))
		}
	}
	return worse
}

// AgainstMarkdown writes how two programs compare.
func AgainstMarkdown(out io.Writer, r *Result) error {
	p := &page{}
	p.line("### %d Jobs at once, %d workers, %s for everything; medians of %d rounds by turns\n",
		r.Jobs, r.Workers, r.Machine, len(r.Rounds)/2)
	p.table("", "base (spread)", "head (spread)", "ratio", "noise", "")
	for _, a := range r.pairings() {
		cell := func(of []float64) string { return fmt.Sprintf("%s (%.0f%%)", a.unit.show(median(of)), 100*spread(of)) }
		verdict := ""
		switch {
		case a.isWorse():
			verdict = "**worse**"
		case a.told:
			verdict = "not judged"
		}
		p.row(a.name, cell(a.base), cell(a.head), fmt.Sprintf("%.3f", a.ratio()), fmt.Sprintf("%.0f%%", 100*a.allowed()), verdict)
	}
	_, err := io.WriteString(out, p.String())
	return err
}
