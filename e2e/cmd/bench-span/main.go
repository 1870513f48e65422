// Command bench-span measures one Job over several workers, of which one is drained and one is lost
// on the way, beside the same Job in one cluster, and prints the figures as Markdown. See package
// bench.
package main

import (
	"context"
	"flag"

	"github.com/jobferry/jobferry/e2e/bench"
	"github.com/jobferry/jobferry/e2e/bench/command"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

func main() {
	o := bench.DefaultSpanOptions()
	options(&o)
	c := command.Command[report.Span]{
		Name:     "bench-span",
		Run:      func(ctx context.Context) (*report.Span, error) { return bench.RunSpan(ctx, o) },
		Markdown: report.SpanMarkdown,
		Missed:   report.MissedOf,
	}
	o.Progress = c.Progress
	c.Main()
}

// options adds the flags for the options.
func options(o *bench.SpanOptions) {
	flag.IntVar(&o.Indexes, "indexes", o.Indexes, "indexes of the Job")
	flag.IntVar(&o.Workers, "workers", o.Workers, "number of worker clusters")
	flag.IntVar(&o.Parallelism, "parallelism", o.Parallelism, "parallelism of the Job")
	flag.IntVar(&o.Room, "room", o.Room, "Pods that fit in each worker; 0: the workers that are left at the end have room for the parallelism, but none does alone")
	flag.DurationVar(&o.RunFor, "run-for", o.RunFor, "how long each Pod runs; shorter than the machine allows, and it's the machine that is measured")
	flag.Float64Var(&o.Drain, "drain", o.Drain, "share of the indexes that have completed when a worker is drained; 0: none is")
	flag.Float64Var(&o.Lose, "lose", o.Lose, "share of the indexes that have completed when a worker is cut off for good; 0: none is")
	flag.DurationVar(&o.LostAfter, "lost-after", o.LostAfter, "the manager's worker-lost-timeout; the fence closes well before")
	flag.BoolVar(&o.Whole, "whole", o.Whole, "also run the Job in one cluster with the room of all, to compare")
	flag.IntVar(&o.Small, "small", o.Small, "indexes of the Job that the manager's memory is compared with; 0: none")
	flag.StringVar(&o.Programs, "programs", o.Programs, "folder with jobferry-manager and jobferry-worker; default: built from the source")
	command.ManagerFlags(&o.ManagerFlags)
}
