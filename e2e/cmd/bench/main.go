// Command bench measures Jobferry on real API servers, and prints the figures as Markdown. See
// package bench.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jobferry/jobferry/e2e/bench"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

// choices are the command line.
type choices struct {
	options bench.Options
	json    string
	check   bool
}

func main() {
	c := choices{options: bench.DefaultOptions()}
	c.parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (c *choices) parse() {
	o := &c.options
	flag.IntVar(&o.Jobs, "jobs", o.Jobs, "Jobs submitted at once")
	flag.IntVar(&o.Rounds, "rounds", o.Rounds, "how often they are, one after another, by turns with the floor")
	flag.IntVar(&o.Singles, "singles", o.Singles, "Jobs submitted one at a time; 0: none")
	flag.IntVar(&o.Workers, "workers", o.Workers, "number of worker clusters")
	flag.BoolVar(&o.Floor, "floor", o.Floor, "also submit the Jobs straight into one cluster, to compare")
	flag.DurationVar(&o.Quiet, "quiet", o.Quiet, "how long the manager is watched at rest; 0: not at all")
	flag.IntVar(&o.Resting, "resting", o.Resting, "Jobs that run all along")
	flag.IntVar(&o.Submitters, "submitters", o.Submitters, "creates and deletes under way at a time")
	flag.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	flag.StringVar(&o.Profiles, "profiles", o.Profiles, "existing folder for profiles: CPU of API servers and manager as floor and flood begin, the manager's heap after it")
	flag.Func("manager-flag", "flag for the manager, such as --log-level=debug; may be repeated", func(s string) error {
		o.ManagerFlags = append(o.ManagerFlags, s)
		return nil
	})
	flag.StringVar(&c.json, "json", c.json, "file to write the figures to, as JSON")
	flag.BoolVar(&c.check, "check", c.check, "exit with an error if a goal is missed")
	flag.Parse()
	o.Progress = func(format string, arguments ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arguments...) }
}

func run(ctx context.Context, c choices) error {
	result, err := bench.Run(ctx, c.options)
	if err != nil {
		return err
	}
	if err := report.Markdown(os.Stdout, result); err != nil {
		return err
	}
	if c.json != "" {
		text, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if missed := report.Missed(result); c.check && len(missed) > 0 {
		return errors.New("goals missed: " + strings.Join(missed, "; "))
	}
	return nil
}
