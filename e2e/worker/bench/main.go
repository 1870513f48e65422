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
	workers := flag.String("workers", "1,5", "numbers of Jobs that are synced at a time")
	rounds := flag.Int("rounds", 1, "how often each contender runs, by turns")
	only := flag.String("rows", "", "only the loads whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, rows(*scale, *only), *workers, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, loads []row, workers string, rounds int) error {
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
	return nil
}
