// Command bench-span measures one Job over several workers, of which one is drained and one is lost
// on the way, beside the same Job in one cluster, and prints the figures as Markdown. See package
// bench.
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
	options bench.SpanOptions
	json    string
	check   bool
}

func main() {
	c := choices{options: bench.DefaultSpanOptions()}
	c.parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench-span:", err)
		os.Exit(1)
	}
}

func (c *choices) parse() {
	o := &c.options
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
	flag.Func("manager-flag", "flag for the manager, such as --log-level=debug; may be repeated", func(s string) error {
		o.ManagerFlags = append(o.ManagerFlags, s)
		return nil
	})
	flag.StringVar(&c.json, "json", c.json, "file to write the figures to, as JSON")
	flag.BoolVar(&c.check, "check", c.check, "exit with an error if a goal is missed")
	flag.Parse()
	o.Progress = func(format string, arguments ...any) {
		fmt.Fprintf(os.Stderr, "bench-span: "+format+"\n", arguments...)
	}
}

func run(ctx context.Context, c choices) error {
	result, err := bench.RunSpan(ctx, c.options)
	if err != nil {
		return err
	}
	if err := report.SpanMarkdown(os.Stdout, result); err != nil {
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
	if missed := report.MissedOf(result); c.check && len(missed) > 0 {
		return errors.New("goals missed: " + strings.Join(missed, "; "))
	}
	return nil
}
