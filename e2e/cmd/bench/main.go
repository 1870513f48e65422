// Command bench measures Jobferry on real API servers, and prints the figures as Markdown. See
// package bench.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/jobferry/jobferry/e2e/bench"
	"github.com/jobferry/jobferry/e2e/bench/command"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

func main() {
	o := bench.DefaultOptions()
	options(&o)
	c := command.Command[report.Result]{
		Name: "bench",
		Run:  func(ctx context.Context) (*report.Result, error) { return bench.Run(ctx, o) },
		Markdown: func(out io.Writer, r *report.Result) error {
			if o.Against != "" {
				return report.AgainstMarkdown(out, r)
			}
			return report.Markdown(out, r)
		},
		Worse:  report.Worse,
		Missed: report.Missed,
	}
	o.Progress = c.Progress
	c.Main()
}

// options adds the flags for the options.
func options(o *bench.Options) {
	flag.IntVar(&o.Jobs, "jobs", o.Jobs, "Jobs submitted at once")
	flag.IntVar(&o.Rounds, "rounds", o.Rounds, "how often they are, one after another, by turns with the floor")
	flag.IntVar(&o.Singles, "singles", o.Singles, "Jobs submitted one at a time; 0: none")
	flag.IntVar(&o.Workers, "workers", o.Workers, "number of worker clusters")
	flag.BoolVar(&o.Floor, "floor", o.Floor, "also submit the Jobs straight into one cluster, to compare")
	flag.BoolVar(&o.Bound, "bound", o.Bound, "also send the writes that any dispatcher makes for these Jobs, and nothing else, to compare")
	flag.DurationVar(&o.Quiet, "quiet", o.Quiet, "how long the manager is watched at rest; 0: not at all")
	flag.IntVar(&o.Resting, "resting", o.Resting, "Jobs that run all along")
	flag.IntVar(&o.Submitters, "submitters", o.Submitters, "creates and deletes under way at a time")
	flag.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	flag.StringVar(&o.Against, "against", o.Against, "another manager's program to compare with, by turns; fails if the first is worse by more than noise")
	flag.StringVar(&o.Profiles, "profiles", o.Profiles, "existing folder for profiles: CPU of API servers and manager as floor and flood begin, the manager's heap after it")
	command.ManagerFlags(&o.ManagerFlags)
}
