// Command rig-up starts a hub and workers, says how to reach them, and keeps them until Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// choices are the command line.
type choices struct {
	workers       int
	nodes         int
	version       string
	workerVersion string
	runFor        time.Duration
	faultProxy    bool
	jobController bool
}

func main() {
	var c choices
	flag.IntVar(&c.workers, "workers", 2, "number of worker clusters")
	flag.IntVar(&c.nodes, "nodes", 3, "number of simulated nodes of each worker")
	flag.StringVar(&c.version, "version", string(binaries.Current), "Kubernetes release of the hub: 1.36 or 1.34")
	flag.StringVar(&c.workerVersion, "worker-version", string(binaries.Current), "Kubernetes release of the workers")
	flag.DurationVar(&c.runFor, "run-for", time.Second, "how long Pods run that don't say so themselves")
	flag.BoolVar(&c.faultProxy, "fault-proxy", false, "put a fault-injecting proxy in front of each worker")
	flag.BoolVar(&c.jobController, "job-controller", true, "run the built-in Job controller in the workers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rig-up:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c choices, out io.Writer) error {
	began := time.Now()
	clusters, err := rig.StartAll(ctx, c.options()...)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ready after %s:\n", time.Since(began).Round(100*time.Millisecond))
	for _, cluster := range clusters {
		fmt.Fprintf(out, "  %-10s Kubernetes %s   export KUBECONFIG=%s\n", cluster.Name(), cluster.Release(), cluster.Kubeconfig())
	}
	fmt.Fprintf(out, "kubectl is %s\nCtrl-C stops and removes them.\n", clusters[0].KubectlProgram())
	<-ctx.Done()
	return rig.StopAll(clusters...)
}

func (c choices) options() []rig.Options {
	options := []rig.Options{{Name: "hub", Release: binaries.Release(c.version)}}
	for n := range c.workers {
		worker := rig.Options{
			Name:       fmt.Sprintf("worker-%d", n+1),
			Release:    binaries.Release(c.workerVersion),
			Nodes:      []rig.Nodes{{Count: c.nodes}},
			Pods:       rig.PodDefaults{RunFor: c.runFor},
			FaultProxy: c.faultProxy,
		}
		if !c.jobController {
			worker.JobController = rig.None
		}
		options = append(options, worker)
	}
	return options
}
