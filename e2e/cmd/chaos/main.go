// Command chaos runs Jobs through Jobferry while processes, links and clocks fail, and judges what
// became of them. See package chaos. Its exit code is 0 only if there was no violation; 130 if it
// was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/e2e/chaos"
	"github.com/jobferry/jobferry/e2e/chaos/report"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

const exitInterrupted = 130 // as of a shell's command that Ctrl-C ended

// choices are the command line.
type choices struct {
	options chaos.Options
	print   bool
	lines   int
}

func main() {
	c := choices{options: chaos.DefaultOptions()}
	c.parse()
	log.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// a second Ctrl-C doesn't wait for the clean-up; the rig's reaper does the rest
	context.AfterFunc(ctx, stop)
	switch err := run(ctx, c); {
	case err == nil:
	case errors.Is(err, context.Canceled):
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func (c *choices) parse() {
	o := &c.options
	flag.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the schedule: the same Jobs and faults at the same times")
	flag.IntVar(&o.Jobs, "jobs", o.Jobs, "number of Jobs")
	flag.IntVar(&o.Faults, "faults", o.Faults, "number of faults")
	flag.DurationVar(&o.Span, "span", o.Span, "time in which faults begin; 0: as long as it takes")
	flag.DurationVar(&o.Settle, "settle", o.Settle, "how long it may take until the next Job ends, after the last fault")
	flag.DurationVar(&o.LostAfter, "lost-after", o.LostAfter, "managers' worker-lost-timeout")
	flag.DurationVar(&o.FenceAfter, "fence-after", o.FenceAfter, "jobferry-worker's fence-after; 0: a third of lost-after")
	flag.BoolVar(&o.Lose, "lose", o.Lose, "let some faults last longer than that")
	flag.Func("fault-kinds", "only these kinds of faults, separated by commas, such as \"kill etcd,rotate Secret\"", func(s string) error {
		for kind := range strings.SplitSeq(s, ",") {
			o.FaultKinds = append(o.FaultKinds, schedule.Kind(strings.TrimSpace(kind)))
		}
		return nil
	})
	flag.Func("job-kinds", "only these kinds of Jobs, separated by commas, such as indexed,halted", func(s string) error {
		o.JobKinds = strings.Split(s, ",")
		return nil
	})
	flag.StringVar(&o.Samples, "samples", "", "record the managers' metrics in this file, for make grafana-picture")
	flag.IntVar(&c.lines, "time-lines", 5, "of how many Jobs with violations the time line is printed")
	flag.BoolVar(&c.print, "print", false, "print the schedule, and do nothing")
	flag.Parse()
	o.Progress = func(format string, arguments ...any) { fmt.Fprintf(os.Stderr, format+"\n", arguments...) }
}

func run(ctx context.Context, c choices) error {
	if c.print {
		return printPlan(c.options)
	}
	result, err := chaos.Run(ctx, c.options)
	if err != nil {
		return err
	}
	if err := report.TimeLines(os.Stdout, result, c.lines); err != nil {
		return err
	}
	if err := report.Table(os.Stdout, result); err != nil {
		return err
	}
	if n := len(result.Violations); n > 0 {
		return fmt.Errorf("%d violations; replay with -seed %d", n, c.options.Seed)
	}
	return nil
}

func printPlan(o chaos.Options) error {
	plan, err := chaos.MakePlan(o)
	if err != nil {
		return err
	}
	for _, s := range plan.Stories {
		fmt.Printf("%10s  Job %s\n", s.At, s.Name)
	}
	for _, f := range plan.Faults {
		fmt.Printf("%10s  %s\n", f.At, f)
	}
	return nil
}
