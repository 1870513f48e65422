package report

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Where a program of a cluster runs: a prefix of its name.
const (
	OnHub     = "hub: "
	InWorkers = "workers: "
)

// CPU is the CPU time of processes.
type CPU struct {
	// Clusters is that of the clusters' programs: OnHub or InWorkers, and the program's name.
	Clusters map[string]time.Duration
	// Manager is that of the manager, Bench that of the program that submits Jobs and watches them,
	// and of the lower bound makes all writes.
	Manager, Bench time.Duration
}

// Since is what was used since an earlier time.
func (c CPU) Since(before CPU) CPU {
	d := CPU{Clusters: map[string]time.Duration{}, Manager: c.Manager - before.Manager, Bench: c.Bench - before.Bench}
	for program, used := range c.Clusters {
		d.Clusters[program] = used - before.Clusters[program]
	}
	return d
}

// All is that of all clusters.
func (c CPU) All() (sum time.Duration) {
	for _, used := range c.Clusters {
		sum += used
	}
	return sum
}

// ratios are how much more than the floor a way took in each round that has both, sorted.
func (r *Result) ratios(way func(*Round) *Burst, of func(*Burst) time.Duration) (ratios []float64) {
	for i := range r.Rounds {
		if b, floor := way(&r.Rounds[i]), r.Rounds[i].Floor; b != nil && floor != nil {
			ratios = append(ratios, of(b).Seconds()/of(floor).Seconds())
		}
	}
	slices.Sort(ratios)
	return ratios
}

func flood(r *Round) *Burst                { return &r.Flood }
func lowerBound(r *Round) *Burst           { return r.Bound }
func complete(b *Burst) time.Duration      { return b.Complete }
func cpuOfClusters(b *Burst) time.Duration { return b.CPU.All() }

// ways are those that the Jobs of a round go.
var ways = []struct {
	name string
	of   func(*Round) *Burst
}{
	{"Jobferry", flood},
	{"lower bound", lowerBound},
	{"floor", func(r *Round) *Burst { return r.Floor }},
}

// cpu is where CPU goes, by program, per Job, on average over all rounds.
func (p *page) cpu(r *Result) {
	if r.Rounds[0].Floor == nil {
		return
	}
	p.line("CPU for each Job until all are Complete, on average over all rounds, by program:\n")
	header := []string{""}
	for _, way := range ways {
		header = append(header, way.name)
	}
	p.table(header...)
	row := func(name string, of func(CPU) time.Duration) {
		cells := []string{name}
		for _, way := range ways {
			cells = append(cells, r.perJob(way.of, of))
		}
		p.row(cells...)
	}
	for _, program := range slices.Sorted(maps.Keys(r.Rounds[0].Flood.CPU.Clusters)) {
		row(program, func(c CPU) time.Duration { return c.Clusters[program] })
	}
	row("all clusters", CPU.All)
	row("manager", func(c CPU) time.Duration { return c.Manager })
	row("the benchmark itself", func(c CPU) time.Duration { return c.Bench })
	against := func(name string, of func(*Burst) time.Duration) {
		cells := []string{name}
		for _, way := range ways {
			cells = append(cells, eachRatio(r.ratios(way.of, of)))
		}
		p.row(cells...)
	}
	against("all clusters, against the floor: median (least to most)", cpuOfClusters)
	against("time, against the floor: median (least to most)", complete)
	p.line("")
}

func eachRatio(sorted []float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", times(median(sorted)), times(sorted[0]), times(sorted[len(sorted)-1]))
}

// writes is what each kind of write costs the hub.
func (p *page) writes(r *Result) {
	if len(r.Writes) == 0 {
		return
	}
	p.line("CPU that the hub uses for each write, by %d of a kind at a time of their own:\n", r.Jobs)
	programs := []string{OnHub + "kube-apiserver", OnHub + "etcd", OnHub + "kube-controller-manager"}
	p.table(append([]string{""}, programs...)...)
	for _, w := range r.Writes {
		cells := []string{w.Name}
		for _, program := range programs {
			cells = append(cells, fmt.Sprintf("%.2f ms", w.CPU.Clusters[program].Seconds()*1000/float64(r.Jobs)))
		}
		p.row(cells...)
	}
	p.line("")
}

// perJob shows a figure of a way per Job, on average over the rounds.
func (r *Result) perJob(way func(*Round) *Burst, of func(CPU) time.Duration) string {
	mean := r.meanOf(way, of)
	if mean < 0 {
		return "-"
	}
	return fractionOfMilliseconds(mean)
}

// meanOf is such a figure; negative: it wasn't measured.
func (r *Result) meanOf(way func(*Round) *Burst, of func(CPU) time.Duration) time.Duration {
	sum, rounds := time.Duration(0), 0
	for i := range r.Rounds {
		if b := way(&r.Rounds[i]); b != nil {
			sum += of(b.CPU)
			rounds++
		}
	}
	if rounds == 0 {
		return -1
	}
	return sum / time.Duration(rounds*r.Jobs)
}

func fractionOfMilliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
