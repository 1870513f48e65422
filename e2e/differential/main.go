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
	atOnce := flag.Int("at-once", 25, "number of Jobs at a time; with many more, clients drop events")
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
	results := playAll(seedsFrom(first, seeds), atOnce, func(seed uint64) result {
		return play1(ctx, builtIn, embedded, seed, 0, rest)
	})
	playAgain(ctx, out, builtIn, embedded, results, 1+atOnce/10)
	ended, events, different := 0, 0, 0
	var errs []error
	for _, r := range results {
		if verbose || r.difference != "" {
			fmt.Fprintf(out, "seed %d:\n%s\n%s\n", r.seed, strings.Join(r.log, "\n"), r.difference)
		}
		switch {
		case r.difference != "":
			different++
		case r.err != nil:
			errs = append(errs, fmt.Errorf("seed %d: %w", r.seed, r.err))
		default:
			ended++
		}
		events += len(r.log) / 2
	}
	metrics, err := awaitMetrics(ctx, builtIn, embedded, seeds >= enoughSeeds)
	errs = append(errs, err)
	fmt.Fprintf(out, "%d Jobs (seeds %d to %d), %d events, %d Jobs ended, %d differences, %d metrics agree, in %v\n",
		seeds, first, first+uint64(seeds)-1, events, ended, different, metrics, time.Since(began).Round(time.Second))
	if different > 0 {
		errs = append(errs, fmt.Errorf("%d of %d Jobs behave differently", different, seeds))
	}
	return errors.Join(errs...)
}

// playAgain replaces the results that differ. Chance can't be ruled out on a busy machine, where
// one side may be a step ahead when an event comes: only what shows again counts, with few others
// beside it and longer rests.
func playAgain(ctx context.Context, out io.Writer, builtIn, embedded *side, results []result, atOnce int) {
	at := map[uint64]int{}
	var seeds []uint64
	for i, r := range results {
		if r.difference != "" || r.err != nil {
			fmt.Fprintf(out, "seed %d differs, once more (order of age differed: %v); the last state that both had, and the event:\n%s\n%s%v\n",
				r.seed, r.apart, strings.Join(r.log[max(0, len(r.log)-2):], "\n"), r.difference, r.err)
			at[r.seed], seeds = i, append(seeds, r.seed)
		}
	}
	for _, r := range playAll(seeds, atOnce, func(seed uint64) result { return again(ctx, builtIn, embedded, seed) }) {
		results[at[r.seed]] = r
	}
}

// again plays a seed that differed once more. A difference while the order of age differed says
// nothing, and the seed is played anew.
func again(ctx context.Context, builtIn, embedded *side, seed uint64) result {
	for attempt := 1; ; attempt++ {
		r := play1(ctx, builtIn, embedded, seed, attempt, 3*rest)
		if !r.apart || r.difference == "" || attempt == attempts {
			return r
		}
	}
}

func seedsFrom(first uint64, n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

// playAll plays so many seeds at a time.
func playAll(seeds []uint64, atOnce int, play func(uint64) result) []result {
	results := make([]result, len(seeds))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, seed := range seeds {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = play(seed)
		})
	}
	wg.Wait()
	return results
}
