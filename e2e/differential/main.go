package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 500, "number of random Jobs")
	first := flag.Uint64("seed", 1, "the first seed")
	atOnce := flag.Int("at-once", 40, "number of Jobs at a time")
	verbose := flag.Bool("v", false, "show the events and states of each seed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, os.Stdout, *first, *seeds, *atOnce, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
}

// compare runs the seeds and prints what came of them. A difference is an error.
func compare(ctx context.Context, out io.Writer, first uint64, seeds, atOnce int, verbose bool) error {
	dir, err := os.MkdirTemp("", "jobferry-differential")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	builtIn, embedded, stop, err := newSides(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()

	began := time.Now()
	results := runAll(ctx, builtIn, embedded, first, seeds, atOnce)
	ended, events, different := 0, 0, 0
	var errs []error
	for _, r := range results {
		if r.difference != "" || r.err != nil {
			fmt.Fprintf(out, "seed %d differs after %q (order of age differed: %v), once more, alone:\n%s%v\n",
				r.seed, last(r.log), r.apart, r.difference, r.err)
			r = again(ctx, builtIn, embedded, r.seed)
		}
		if verbose || r.difference != "" {
			fmt.Fprintf(out, "seed %d:\n%s\n%s\n", r.seed, strings.Join(r.log, "\n"), r.difference)
		}
		if r.difference != "" {
			different++
		}
		if r.ended {
			ended++
		}
		if r.err != nil {
			errs = append(errs, fmt.Errorf("seed %d: %w", r.seed, r.err))
		}
		events += len(r.log) / 2
	}
	fmt.Fprintf(out, "%d Jobs (seeds %d to %d), %d events, %d Jobs ended, %d differences, in %v\n",
		seeds, first, first+uint64(seeds)-1, events, ended, different, time.Since(began).Round(time.Second))
	if different > 0 {
		errs = append(errs, fmt.Errorf("%d of %d Jobs behave differently", different, seeds))
	}
	return errors.Join(errs...)
}

// again plays a seed that differed once more, alone. Chance can't be ruled out on a busy machine,
// where one side may be a step ahead when an event comes: only what shows again counts. A
// difference while the order of age differed says nothing, and the seed is played anew.
func again(ctx context.Context, builtIn, embedded *side, seed uint64) result {
	for attempt := 1; ; attempt++ {
		r := play1(ctx, builtIn, embedded, seed, attempt, 3*rest)
		if !r.apart || r.difference == "" || attempt == attempts {
			return r
		}
	}
}

func runAll(ctx context.Context, builtIn, embedded *side, first uint64, seeds, atOnce int) []result {
	results := make([]result, seeds)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range seeds {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = play1(ctx, builtIn, embedded, first+uint64(i), 0, rest)
		})
	}
	wg.Wait()
	return results
}

// last is the event that a log ends with.
func last(log []string) string {
	if len(log) == 0 {
		return "creation"
	}
	return log[len(log)-1]
}
