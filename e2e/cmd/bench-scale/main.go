// Command bench-scale measures a manager with a real hub and many simulated workers, and prints the
// figures as Markdown. See package bench.
package main

import (
	"context"
	"flag"

	"github.com/jobferry/jobferry/e2e/bench"
	"github.com/jobferry/jobferry/e2e/bench/command"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

func main() {
	o := bench.DefaultScaleOptions()
	options(&o)
	c := command.Command[report.Scale]{
		Name:     "bench-scale",
		Run:      func(ctx context.Context) (*report.Scale, error) { return bench.RunScale(ctx, o) },
		Markdown: report.ScaleMarkdown,
		Missed:   (*report.Scale).MissedGoals,
	}
	o.Progress = c.Progress
	c.Main()
}

// options adds the flags for the options.
func options(o *bench.ScaleOptions) {
	flag.IntVar(&o.Workers, "workers", o.Workers, "number of simulated workers")
	flag.IntVar(&o.Jobs, "jobs", o.Jobs, "Jobs that run all along")
	flag.IntVar(&o.Few, "few", o.Few, "how many of them are there when memory is measured for the first time")
	flag.IntVar(&o.Finished, "finished", o.Finished, "Jobs that have finished")
	flag.IntVar(&o.Lost, "lost", o.Lost, "workers that are lost at once; 0: none")
	flag.DurationVar(&o.LostAfter, "lost-after", o.LostAfter, "the manager's worker-lost-timeout")
	flag.IntVar(&o.Singles, "singles", o.Singles, "Jobs submitted one after another, with and without a slow worker")
	flag.DurationVar(&o.Slow, "slow", o.Slow, "how late the slow worker answers")
	flag.StringVar(&o.MemoryLimit, "memory-limit", o.MemoryLimit, "GOMEMLIMIT of the managers, such as 450MiB; empty: none")
	flag.DurationVar(&o.TimeLimit, "time-limit", o.TimeLimit, "how long a run may take; what was measured until then is printed")
	flag.StringVar(&o.Profiles, "profiles", o.Profiles, "directory for heap profiles of the manager after each start; empty: none")
	flag.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	command.ManagerFlags(&o.ManagerFlags)
}
