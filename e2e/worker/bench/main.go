package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/worker/play"
)

func main() {
	scale := flag.Float64("scale", 1, "size of the loads, 1 for the whole")
	workers := flag.String("workers", "1,5", "numbers of Jobs that are synced at a time")
	only := flag.String("rows", "", "only the loads whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, rows(*scale, *only), *workers); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure is what a row cost.
type measure struct {
	elapsed time.Duration
	writes  map[string]int // requests of the controller, by verb and resource
}

// usage is what a contender's process took over all rows.
type usage struct {
	cpu    float64 // seconds
	memory int64   // bytes, at most
}

func bench(ctx context.Context, loads []row, workers string) error {
	dir, err := os.MkdirTemp("", "jobferry-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for text := range strings.SplitSeq(workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-workers: %w", err)
		}
		var measures [2][]measure
		var usages [2]usage
		for i, c := range contenders {
			if measures[i], usages[i], err = c.run(ctx, dir, n, loads); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		show(n, loads, measures, usages)
	}
	return nil
}

// run measures all rows with a contender in a cluster of its own.
func (c contender) run(ctx context.Context, dir string, workers int, rows []row) ([]measure, usage, error) {
	cluster, err := rig.Start(ctx, rig.Options{
		Name: c.name, JobController: rig.None, Audit: true,
		ControllerManagerFlags: []string{"--controllers=namespace-controller,serviceaccount-controller"},
		// Namespaces can be used at once.
		APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount"},
	})
	if err != nil {
		return nil, usage{}, err
	}
	defer func() { _ = cluster.Stop() }() // it goes with this process anyway
	if err := play.AddNode(ctx, cluster.Client()); err != nil {
		return nil, usage{}, err
	}
	process, err := c.launch(ctx, dir, cluster, workers)
	if err != nil {
		return nil, usage{}, err
	}
	var out []measure
	for i, r := range rows {
		before, err := writes(cluster)
		if err != nil {
			return nil, usage{}, err
		}
		elapsed, err := r.run(ctx, cluster.Client(), fmt.Sprintf("row-%d", i))
		if err != nil {
			return nil, usage{}, fmt.Errorf("%s: %w", r.name, err)
		}
		after, err := writes(cluster)
		if err != nil {
			return nil, usage{}, err
		}
		for key, n := range before {
			after[key] -= n
		}
		out = append(out, measure{elapsed, after})
		fmt.Fprintf(os.Stderr, "%s, %d at a time: %s: %v\n", c.name, workers, r.name, elapsed.Round(10*time.Millisecond))
	}
	process.Kill()
	cpu, memory := process.Usage()
	return out, usage{cpu, memory}, nil
}

// writes counts the requests of Job controllers so far.
func writes(c *rig.Cluster) (map[string]int, error) {
	requests, err := c.Requests()
	if err != nil {
		return nil, err
	}
	var ours []rig.Request
	for _, r := range requests {
		controller := strings.HasPrefix(r.UserAgent, "kube-controller-manager") || strings.HasPrefix(r.UserAgent, "jobferry-worker")
		about := r.Object.Resource == "pods" || r.Object.Resource == "jobs" || r.Object.Resource == "events"
		if controller && about && r.Verb != "watch" && r.Verb != "list" {
			ours = append(ours, r)
		}
	}
	return rig.CountBy(ours, func(r rig.Request) string {
		return strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")
	}), nil
}

// show prints both contenders side by side. A ratio above 1 is in favour of the embedded one.
func show(workers int, rows []row, measures [2][]measure, usages [2]usage) {
	fmt.Printf("\n%d Job(s) synced at a time\n\n", workers)
	fmt.Println("| load | built-in, Pods/s | embedded, Pods/s | ratio | writes per Pod, built-in | embedded |")
	fmt.Println("|---|---|---|---|---|---|")
	for i, r := range rows {
		a, b := measures[0][i], measures[1][i]
		pods := float64(r.pods())
		fmt.Printf("| %s | %.0f | %.0f | %.2f | %s | %s |\n", r.name, pods/a.elapsed.Seconds(), pods/b.elapsed.Seconds(),
			a.elapsed.Seconds()/b.elapsed.Seconds(), perPod(a.writes, pods), perPod(b.writes, pods))
	}
	fmt.Printf("| CPU of all three, s | %.1f | %.1f | %.2f | | |\n", usages[0].cpu, usages[1].cpu, usages[0].cpu/usages[1].cpu)
	const mib = 1 << 20
	fmt.Printf("| memory, MiB | %d | %d | %.2f | | |\n", usages[0].memory/mib, usages[1].memory/mib, float64(usages[0].memory)/float64(usages[1].memory))
}

// perPod is the number of writes about Pods and Jobs per Pod; events are extra.
func perPod(writes map[string]int, pods float64) string {
	all, status, events := 0, 0, 0
	for key, n := range writes {
		switch {
		case strings.Contains(key, " events"):
			events += n
		case strings.HasPrefix(key, "get"):
		default:
			all += n
		}
		if strings.HasSuffix(key, "jobs/status") {
			status += n
		}
	}
	return fmt.Sprintf("%.2f (%d status, %d events)", float64(all)/pods, status, events)
}
