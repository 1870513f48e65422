package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	scale := flag.Float64("scale", 1, "size of the loads, 1 for the whole")
	workers := flag.String("workers", "1,5", "numbers of Jobs that are synced at a time, in the loads")
	rounds := flag.Int("rounds", 1, "how often each contender runs, by turns")
	only := flag.String("rows", "", "only the loads whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, rows(*scale, *only), populationOf(*scale, *only), *workers, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, loads []row, held *population, workers string, rounds int) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds: must be at least 1, not %d", rounds)
	}
	dir, err := os.MkdirTemp("", "jobferry-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for text := range strings.SplitSeq(workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-workers: %w", err)
		}
		if len(loads) == 0 {
			break
		}
		var runs [2][]run
		for range rounds {
			for i, c := range contenders {
				r, err := c.run(ctx, dir, n, loads)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				runs[i] = append(runs[i], r)
			}
		}
		show(n, loads, runs)
	}
	if held == nil {
		return nil
	}
	return benchMemory(ctx, dir, held)
}

// benchMemory measures both contenders at the same time.
func benchMemory(ctx context.Context, dir string, held *population) error {
	var both [2]resident
	err := inParallel(len(contenders), func(i int) (err error) {
		if both[i], err = contenders[i].resident(ctx, dir, held); err != nil {
			return fmt.Errorf("%s: %w", contenders[i].name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	showResident(held, both)
	return nil
}
