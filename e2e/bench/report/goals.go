package report

import (
	"fmt"
	"time"
)

// goal is what a figure has to be, at most.
type goal struct {
	name string
	// got is the figure; measured says whether it was measured at all.
	got func(*Result) (value float64, measured bool)
	// most is the limit.
	most float64
	// show writes such a figure.
	show func(float64) string
}

const megabyte = 1e6

// goals are those of the project.
var goals = []goal{
	{"requests of the manager per Job", func(r *Result) (float64, bool) {
		requests, _ := r.PerJob()
		return requests, true
	}, 5, decimals(2)},
	{"events per Job", func(r *Result) (float64, bool) {
		_, events := r.PerJob()
		return events, true
	}, 1, decimals(2)},
	{"CPU of the manager per Job, mean", func(r *Result) (float64, bool) {
		return float64(r.meanOf(flood, func(c CPU) time.Duration { return c.Manager })), true
	}, float64(5 * time.Millisecond), func(v float64) string { return fractionOfMilliseconds(time.Duration(v)) }},
	{"requests at rest", func(r *Result) (float64, bool) { return float64(r.AtRest()), r.Quiet > 0 }, 0, decimals(0)},
	{"peak memory of the manager", func(r *Result) (float64, bool) { return float64(r.PeakMemory), true }, 300 * megabyte, megabytes},
	{"CPU of the clusters, against the floor, median", againstFloor(cpuOfClusters), 1.55, times},
	{"all Complete, against the lower bound, median", func(r *Result) (float64, bool) {
		bound := r.ratios(lowerBound, complete)
		if len(bound) == 0 {
			return 0, false
		}
		return median(r.ratios(flood, complete)) / median(bound), true
	}, 1.05, times},
	{"create -> mirror, all at once: p99 against p50", func(r *Result) (float64, bool) {
		mirror := r.Typical().AtOnce.Mirror
		return float64(mirror.P99) / float64(mirror.P50), mirror.Count > 0
	}, 1.5, times},
	{"places that a Job fell back on its way to the mirror, p99", func(r *Result) (float64, bool) {
		return float64(r.Typical().Overtaken.P99), r.Typical().AtOnce.Mirror.Count > 0
	}, 128, decimals(0)}, // as many Jobs as are reconciled at a time
	{"create -> mirror, one at a time, p50", func(r *Result) (float64, bool) {
		return float64(r.Singles.Mirror.P50), r.Singles.Mirror.Count > 0
	}, float64(40 * time.Millisecond), func(v float64) string { return milliseconds(time.Duration(v)) }},
}

// againstFloor is how much more than the floor the Jobs took by way of the hub, in the middle one
// of the rounds.
func againstFloor(of func(*Burst) time.Duration) func(*Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		ratios := r.ratios(flood, of)
		if len(ratios) == 0 {
			return 0, false
		}
		return median(ratios), true
	}
}

// Missed names the goals that a result misses.
func Missed(r *Result) []string {
	var missed []string
	for _, g := range goals {
		if value, measured := g.got(r); measured && value > g.most {
			missed = append(missed, fmt.Sprintf("%s: %s, at most %s", g.name, g.show(value), g.show(g.most)))
		}
	}
	return missed
}

func decimals(n int) func(float64) string {
	return func(v float64) string { return fmt.Sprintf("%.*f", n, v) }
}

func times(v float64) string     { return fmt.Sprintf("%.2fx", v) }
func megabytes(v float64) string { return fmt.Sprintf("%.0f MB", v/megabyte) }
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
