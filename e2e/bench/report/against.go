package report

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Used is what one manager used in a round, for its whole life.
type Used struct {
	// Requests are those about neither events nor the Pods that the hub shows.
	Requests, Events, PodRequests int
	Allocations, Allocated        int64
	Heap, PeakMemory              int64
	CPU                           time.Duration
}

// compared is one figure of two managers.
type compared struct {
	name string
	unit Unit
	of   func(r *Round) float64
	// per is what it's divided by; nil: nothing.
	per func(*Result) int
	// noise is the share that rounds of one manager differ by at least.
	noise float64
	// told: it's only told, as it depends on what else the machine does.
	told bool
	// shown: it matters only where Pods are shown.
	shown bool
}

func jobsOf(r *Result) int { return r.Jobs }

func podsOf(r *Result) int { return r.Jobs * max(r.Pods, 1) }

// comparisons have the steadiest figures first.
var comparisons = []compared{
	{name: "requests per Job", per: jobsOf, noise: 0.02, of: func(r *Round) float64 { return float64(r.Used.Requests) }},
	{name: "events per Job", per: jobsOf, noise: 0.02, of: func(r *Round) float64 { return float64(r.Used.Events) }},
	{name: "requests per Pod, to show it", per: podsOf, shown: true, of: func(r *Round) float64 { return float64(r.Used.PodRequests) }},
	{name: "allocations per Job", per: jobsOf, noise: 0.1, of: func(r *Round) float64 { return float64(r.Used.Allocations) }},
	{name: "allocated per Job", unit: Kilobyte, per: jobsOf, noise: 0.1, of: func(r *Round) float64 { return float64(r.Used.Allocated) }},
	{name: "heap when all are gone", unit: Megabyte, noise: 0.15, of: func(r *Round) float64 { return float64(r.Used.Heap) }},
	{name: "peak memory", unit: Megabyte, noise: 0.15, of: func(r *Round) float64 { return float64(r.Used.PeakMemory) }},
	{name: "CPU of the manager", unit: Seconds, noise: 0.15, of: func(r *Round) float64 { return r.Used.CPU.Seconds() }},
	{name: "CPU of the clusters", unit: Seconds, noise: 0.15, of: func(r *Round) float64 { return r.Flood.CPU.All().Seconds() }},
	{name: "all Complete", unit: Seconds, noise: 0.3, told: true, of: func(r *Round) float64 { return r.Flood.Complete.Seconds() }},
	{name: "worker status -> hub status, p50", unit: Seconds, shown: true, of: func(r *Round) float64 { return r.AtOnce.Lag.P50.Seconds() }},
	{name: "worker status -> hub status, p99", unit: Seconds, shown: true, of: func(r *Round) float64 { return r.AtOnce.Lag.P99.Seconds() }},
}

// pairing is a figure of both managers, in all rounds.
type pairing struct {
	compared
	base, head []float64
}

func (r *Result) pairings() (all []pairing) {
	for _, c := range comparisons {
		if c.shown && !r.Shows {
			continue
		}
		a, per := pairing{compared: c}, 1
		if c.per != nil {
			per = c.per(r)
		}
		for i := range r.Rounds {
			if value := c.of(&r.Rounds[i]) / float64(per); r.Rounds[i].IsBase {
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
// base, or the base shows no Pods: they cost what they cost.
func Worse(r *Result) (worse []string) {
	if r.Shows || !slices.ContainsFunc(r.Rounds, func(r Round) bool { return r.IsBase }) {
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

// AgainstMarkdown writes how two managers compare.
func AgainstMarkdown(out io.Writer, r *Result) error {
	p := &page{}
	p.line("### %d Jobs of %d Pods at once, %d workers, %s for everything; medians of %d rounds by turns\n",
		r.Jobs, max(r.Pods, 1), r.Workers, r.Machine, len(r.Rounds)/2)
	base, head := "base", "head"
	if r.Shows {
		base, head = "Pods not shown", "Pods shown"
	}
	p.table("", base+" (spread)", head+" (spread)", "ratio", "noise", "")
	for _, a := range r.pairings() {
		cell := func(of []float64) string { return fmt.Sprintf("%s (%.0f%%)", a.unit.show(median(of)), 100*spread(of)) }
		verdict := ""
		switch {
		case r.Shows:
		case a.isWorse():
			verdict = "**worse**"
		case a.told:
			verdict = "not judged"
		}
		ratio := ""
		if median(a.base) != 0 {
			ratio = fmt.Sprintf("%.3f", a.ratio())
		}
		p.row(a.name, cell(a.base), cell(a.head), ratio, fmt.Sprintf("%.0f%%", 100*a.allowed()), verdict)
	}
	_, err := io.WriteString(out, p.String())
	return err
}
