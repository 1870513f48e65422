// Command bench-soak holds managers under steady load, and prints whether their memory grows, and what was
// late or lost, as Markdown. See package bench.
package main

import (
	"context"
	"flag"

	"github.com/jobferry/jobferry/e2e/bench"
	"github.com/jobferry/jobferry/e2e/bench/command"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

func main() {
	o := bench.DefaultSoakOptions()
	options(&o)
	c := command.Command[report.Soak]{
		Name:     "bench-soak",
		Run:      func(ctx context.Context) (*report.Soak, error) { return bench.RunSoak(ctx, o) },
		Markdown: report.SoakMarkdown,
		Missed:   (*report.Soak).MissedGoals,
	}
	o.Progress = c.Progress
	c.Main()
}

// options adds the flags for the options.
func options(o *bench.SoakOptions) {
	flag.DurationVar(&o.Duration, "duration", o.Duration, "how long Jobs are submitted")
	flag.Float64Var(&o.Rate, "rate", o.Rate, "Jobs per second; 0: four fifths of what the machine does with -burst Jobs at once")
	flag.IntVar(&o.Burst, "burst", o.Burst, "Jobs at once, to find out the rate")
	flag.DurationVar(&o.Leaders, "leaders", o.Leaders, "how long each manager leads")
	flag.DurationVar(&o.Rotations, "rotations", o.Rotations, "time from one change of a worker's credentials to the next")
	flag.DurationVar(&o.Samples, "samples", o.Samples, "time from one sample of the leader's memory to the next")
	flag.DurationVar(&o.Settle, "settle", o.Settle, "how long a manager has led when it's sampled first")
	flag.DurationVar(&o.TTL, "ttl", o.TTL, "how long finished Jobs are kept")
	flag.IntVar(&o.Workers, "workers", o.Workers, "number of worker clusters")
	flag.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	command.ManagerFlags(&o.ManagerFlags)
}
