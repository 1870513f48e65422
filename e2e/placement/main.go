package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	pairs := flag.Int("pairs", 10000, "number of random clusters and Jobs")
	first := flag.Uint64("seed", 1, "the first seed")
	release := flag.String("release", "1.36", "Kubernetes release of the scheduler")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, os.Stdout, *release, *first, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "placement:", err)
		os.Exit(1)
	}
}

// batch is how many pairs are played at once.
const batch = 32

// compare plays the pairs and prints what came of them. A false "never" is an error, and so is more
// than one false "fits now" in a thousand.
func compare(ctx context.Context, out io.Writer, release string, first uint64, pairs int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newSide(ctx, release)
	if err != nil {
		return err
	}
	t := tally{out: out, counts: map[difference]int{}}
	began := time.Now()
	for from := 0; from < pairs && ctx.Err() == nil; from += batch {
		games := make([]*game, min(batch, pairs-from))
		for i := range games {
			seed := first + uint64(from+i)
			games[i] = &game{pair: random(seed), id: fmt.Sprintf("pair%d", i), seed: seed}
		}
		s.play(ctx, games)
		for _, g := range games {
			t.add(ctx, s, g)
		}
	}
	took := time.Since(began)
	fmt.Fprintf(out, "Kubernetes %s, %d pairs (seeds %d to %d) in %v, %.1f a second: %v; differences: %v\n",
		release, t.played, first, first+uint64(pairs)-1, took.Round(time.Second), float64(t.played)/took.Seconds(), t.verdicts, t.counts)
	cancel()
	return errors.Join(t.judgement(), s.cluster.Stop())
}

// tally of all pairs.
type tally struct {
	out      io.Writer
	played   int
	verdicts [3]int
	counts   map[difference]int
	errs     []error
}

// add counts a game, and shows the first that differ.
func (t *tally) add(ctx context.Context, s *side, g *game) {
	if g.err != nil {
		t.errs = append(t.errs, fmt.Errorf("seed %d: %w", g.seed, g.err))
		return
	}
	t.played++
	t.verdicts[g.answer.Verdict]++
	found := g.difference()
	if found == "" {
		return
	}
	t.counts[found]++
	if t.counts[found] > shown {
		return
	}
	fmt.Fprintf(t.out, "seed %d: %s\n%s\n", g.seed, found, s.shrink(ctx, "smaller", g))
}

// shown is how many differences of a kind are made small and printed.
const shown = 5

func (t *tally) judgement() error {
	if n := t.counts[falseNever]; n > 0 {
		t.errs = append(t.errs, fmt.Errorf("%d of %d: %s", n, t.played, falseNever))
	}
	if n := t.counts[falseNow]; n*1000 > t.played {
		t.errs = append(t.errs, fmt.Errorf("%d of %d: %s", n, t.played, falseNow))
	}
	return errors.Join(t.errs...)
}
