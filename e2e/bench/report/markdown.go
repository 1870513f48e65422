package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/measure"
)

// Markdown writes a result as Markdown: the figures, the requests by kind, and how the goals were
// met.
func Markdown(out io.Writer, r *Result) error {
	p := &page{}
	p.figures(r)
	p.cpu(r)
	p.writes(r)
	p.requests(r)
	p.quiet(r)
	p.goals(r)
	_, err := io.WriteString(out, p.String())
	return err
}

type page struct{ strings.Builder }

func (p *page) line(format string, arguments ...any) { fmt.Fprintf(p, format+"\n", arguments...) }

// table starts a table; the first column is text, the others are numbers.
func (p *page) table(header ...string) {
	p.line("| %s |", strings.Join(header, " | "))
	p.line("|---|%s", strings.Repeat("---:|", len(header)-1))
}

func (p *page) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

func (p *page) figures(r *Result) {
	p.line("### %d Jobs, %d workers, %s for everything%s\n", r.Jobs, r.Workers, r.Machine, rounds(r))
	typical := r.Typical()
	floor := func(show func(*Burst) string) string {
		if typical.Floor == nil {
			return "-"
		}
		return show(typical.Floor)
	}
	peer := func(show func(*Peer) string) string {
		if r.Peer == nil {
			return "-"
		}
		return show(r.Peer)
	}
	requests, events := r.PerJob()
	peerRequests := func(p *Peer) string {
		requests, _ := perJob(p.Requests, r.Jobs)
		return decimals(2)(requests)
	}
	peerEvents := func(p *Peer) string {
		_, events := perJob(p.Requests, r.Jobs)
		return decimals(2)(events)
	}
	p.table("", "Jobferry", "floor: one cluster", "MultiKueue")
	p.row("all Complete", seconds(typical.Flood.Complete)+against(typical.Ratio()), floor(func(b *Burst) string { return seconds(b.Complete) }),
		peer(func(p *Peer) string { return seconds(p.Flood.Complete) + against(p.Flood.against(p.Floor)) }))
	if len(r.Rounds) > 1 {
		p.row("the same in each round", each(r, (*Round).flood), each(r, (*Round).floor), "")
	}
	rate := func(b *Burst) string { return decimals(1)(b.Rate(r.Jobs)) }
	p.row("Jobs per second", rate(&typical.Flood), floor(rate), peer(func(p *Peer) string { return rate(&p.Flood) }))
	p.row("create -> mirror, one at a time, p50 / p90 / p99", quantiles(r.Singles.Mirror), "", peer(func(p *Peer) string { return quantiles(p.Singles.Mirror) }))
	p.row("create -> mirror, all at once, p50 / p90 / p99", quantiles(typical.AtOnce.Mirror), "", peer(func(p *Peer) string { return quantiles(p.AtOnce.Mirror) }))
	o := typical.Overtaken
	p.row("places that a Job fell back, from the order of creation to that of mirrors, p50 / p99 / most",
		fmt.Sprintf("%d / %d / %d", o.P50, o.P99, o.Most), "", "")
	p.row("worker status -> hub status, one at a time, p50 / p90 / p99", quantiles(r.Singles.Lag), "", peer(func(p *Peer) string { return quantiles(p.Singles.Lag) }))
	p.row("worker status -> hub status, all at once, p50 / p90 / p99", quantiles(typical.AtOnce.Lag), "", peer(func(p *Peer) string { return quantiles(p.AtOnce.Lag) }))
	p.row("requests of the manager per Job, whole life", decimals(2)(requests), "", peer(peerRequests))
	p.row("events per Job", decimals(2)(events), "", peer(peerEvents))
	p.row("requests of the manager in "+r.Quiet.String()+" of quiet", rest(r), "", "")
	p.row("manager: CPU until all Complete", seconds(typical.Flood.CPU.Manager), "", peer(func(p *Peer) string { return seconds(p.Flood.CPU.Clusters[OnHub+"kueue"]) }))
	p.row("manager: peak memory", megabytes(float64(r.PeakMemory)), "", peer(func(p *Peer) string { return megabytes(float64(p.PeakMemory)) }))
	p.row("all clusters: CPU until all Complete", seconds(typical.Flood.CPU.All()), floor(func(b *Burst) string { return seconds(b.CPU.All()) }),
		peer(func(p *Peer) string { return seconds(p.Flood.CPU.All() - p.Flood.CPU.Clusters[OnHub+"kueue"]) }))
	p.row("deleted, until all are gone from the hub", seconds(typical.Removal), "", "")
	p.line("")
	if r.Peer != nil {
		requests, events := perJob(r.Peer.OfWorkers, r.Jobs)
		p.line("MultiKueue is Kueue %s, once, after the others, with its clients of workers at %d requests per second. Each worker has a Kueue of its own, "+
			"which makes %.2f requests and %.2f events per Job, and whose CPU (%s) counts for the clusters.\n",
			r.Peer.Version, r.Peer.Rate, requests, events, seconds(r.Peer.Flood.CPU.Clusters[InWorkers+"kueue"]))
	}
}

// rounds says which of several rounds the figures are those of.
func rounds(r *Result) string {
	if len(r.Rounds) == 1 {
		return ""
	}
	return fmt.Sprintf("; the middle one of %d rounds", len(r.Rounds))
}

// each shows a figure of all rounds, in the order of their ratios.
func each(r *Result, figure func(*Round) string) string {
	var all []string
	for _, round := range r.sorted() {
		all = append(all, figure(&round))
	}
	return strings.Join(all, ", ")
}

func (r *Round) flood() string { return seconds(r.Flood.Complete) + against(r.Ratio()) }

func (r *Round) floor() string {
	if r.Floor == nil {
		return "-"
	}
	return seconds(r.Floor.Complete)
}

// against shows a ratio to the floor's time; 0: there is none.
func against(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return " (" + times(ratio) + ")"
}

func rest(r *Result) string {
	if r.Quiet == 0 {
		return "-"
	}
	return fmt.Sprint(r.AtRest())
}

func quantiles(q measure.Quantiles) string {
	if q.Count == 0 {
		return "-"
	}
	return milliseconds(q.P50) + " / " + milliseconds(q.P90) + " / " + milliseconds(q.P99)
}

func (p *page) requests(r *Result) {
	p.line("Requests of the manager for those Jobs, from their creation until they were deleted:\n")
	p.table("request", "cluster", "per Job", "in all", "answered by an error")
	for _, c := range r.Requests {
		p.row(c.Verb+" "+c.Resource, c.Cluster, decimals(2)(float64(c.Requests)/float64(r.Submitted())), fmt.Sprint(c.Requests), fmt.Sprint(c.Failed))
	}
	p.line("")
}

func (p *page) quiet(r *Result) {
	if r.Quiet == 0 {
		return
	}
	p.line("In %s of quiet, with %d Jobs running and %d finished, the manager made %d requests%s; besides its upkeep: %s.\n",
		r.Quiet, r.Resting, r.Jobs, r.AtRest(), listed(r.QuietRequests), counts(r.Upkeep))
}

func listed(all []audit.Count) string {
	if len(all) == 0 {
		return ""
	}
	return " (" + counts(all) + ")"
}

func counts(all []audit.Count) string {
	if len(all) == 0 {
		return "none"
	}
	var parts []string
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("%d %s %s (%s)", c.Requests, c.Verb, c.Resource, c.Cluster))
	}
	return strings.Join(parts, ", ")
}

func (p *page) goals(r *Result) {
	p.table("goal", "at most", "measured", "")
	for _, g := range goals {
		value, measured := g.got(r)
		shown, verdict := g.show(value), "met"
		switch {
		case !measured:
			shown, verdict = "-", "not measured"
		case value > g.most:
			verdict = "**missed**"
		}
		p.row(g.name, g.show(g.most), shown, verdict)
	}
}
