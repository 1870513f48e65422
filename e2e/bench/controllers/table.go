package controllers

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Markdown prints the figures as tables.
func Markdown(out io.Writer, r *Result) error {
	var text strings.Builder
	for _, l := range r.Loads {
		l.show(&text)
	}
	if r.Resident != nil {
		showResident(&text, r.held, *r.Resident)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// show prints both contenders side by side. A ratio above 1 is in favour of the embedded one. Of
// several rounds it's the median, beside the least and the most.
func (l load) show(out io.Writer) {
	rows, runs := l.rows, l.Runs
	fmt.Fprintf(out, "\n%d Job(s) synced at a time, %d round(s)\n\n", l.Workers, len(runs[0]))
	fmt.Fprintln(out, "| load | built-in, Pods/s | embedded, Pods/s | ratio | writes per Pod, built-in | embedded |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	for i, r := range rows {
		pods := float64(r.pods())
		speed := func(of run) float64 { return pods / of.Rows[i].Elapsed.Seconds() }
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %s | %s | %s |\n", r.name, median(each(runs[0], speed)), median(each(runs[1], speed)),
			ratios(runs[1], runs[0], speed), perPod(runs[0], i, pods), perPod(runs[1], i, pods))
	}
	cpu := func(r run) float64 { return r.CPU }
	fmt.Fprintf(out, "| CPU of all three, s | %.1f | %.1f | %s | | |\n", median(each(runs[0], cpu)), median(each(runs[1], cpu)), ratios(runs[0], runs[1], cpu))
	memory := func(r run) float64 { return float64(r.Memory) / (1 << 20) }
	fmt.Fprintf(out, "| memory, MiB | %.0f | %.0f | %s | | |\n", median(each(runs[0], memory)), median(each(runs[1], memory)), ratios(runs[0], runs[1], memory))
	requests(out, rows, runs)
}

// ratios compares the runs of each round.
func ratios(a, b []run, figure func(run) float64) string {
	all := each(a, figure)
	for i, other := range each(b, figure) {
		all[i] /= other
	}
	if len(all) == 1 {
		return fmt.Sprintf("%.2f", all[0])
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(all), slices.Min(all), slices.Max(all))
}

func each(runs []run, figure func(run) float64) []float64 {
	var all []float64
	for _, r := range runs {
		all = append(all, figure(r))
	}
	return all
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// perPod is the number of writes about Pods and Jobs per Pod; events are extra.
func perPod(runs []run, row int, pods float64) string {
	all, status, events := 0, 0, 0
	for key, n := range total(runs, row) {
		switch {
		case strings.Contains(key, " events"):
			events += n
		case strings.HasPrefix(key, "get"):
		default:
			all += n
		}
		if strings.Contains(key, "jobs/status") {
			status += n
		}
	}
	return fmt.Sprintf("%.2f (%d status, %d events)", float64(all)/pods/float64(len(runs)), status/len(runs), events/len(runs))
}

func total(runs []run, row int) map[string]int {
	sum := map[string]int{}
	for _, r := range runs {
		for key, n := range r.Rows[row].Writes {
			sum[key] += n
		}
	}
	return sum
}

// requests prints what both asked for, all rounds together.
func requests(out io.Writer, rows []row, runs [2][]run) {
	fmt.Fprintln(out, "\n| requests of all rounds | load | built-in | embedded |\n|---|---|---|---|")
	for i, r := range rows {
		a, b := total(runs[0], i), total(runs[1], i)
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if a[key]+b[key] > 0 {
				fmt.Fprintf(out, "| %s | %s | %d | %d |\n", key, r.name, a[key], b[key])
			}
		}
	}
}

// showResident prints what both hold in memory. A ratio below 1 is in favour of the embedded one.
func showResident(out io.Writer, p *population, both [2]resident) {
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	fmt.Fprintf(out, "\n| %v, MiB | built-in | embedded | ratio |\n|---|---|---|---|\n", p)
	fmt.Fprintf(out, "| without Pods | %.0f | %.0f | |\n", mib(both[0].Without), mib(both[1].Without))
	fmt.Fprintf(out, "| with the Pods | %.0f | %.0f | %.2f |\n", mib(both[0].With), mib(both[1].With), mib(both[1].With)/mib(both[0].With))
	fmt.Fprintf(out, "| for the Pods | %.0f | %.0f | %.2f |\n", both[0].share(), both[1].share(), both[1].share()/both[0].share())
	fmt.Fprintf(out, "| CPU since the start, s | %.1f | %.1f | %.2f |\n", both[0].CPU, both[1].CPU, both[1].CPU/both[0].CPU)
}
