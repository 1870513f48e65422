package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

func main() {
	pairs := flag.Int("pairs", 10000, "number of random clusters and Jobs")
	groups := flag.Int("groups", 10000, "number of random clusters and groups of Jobs")
	inCluster := flag.Int("in-cluster", 200, "how many of them the scheduler of a real cluster gets, too")
	first := flag.Uint64("seed", 1, "the first seed")
	releases := flag.String("releases", "1.36", "Kubernetes releases of the scheduler")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var errs []error
	for release := range strings.SplitSeq(*releases, ",") {
		errs = append(errs, compare(ctx, os.Stdout, release, *first, counts{*pairs, *groups, *inCluster}))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "placement:", err)
		os.Exit(1)
	}
}

// counts of what is played: pairs of a cluster and a Job, of a cluster and a group, and of how many
// of the former in a real cluster, too.
type counts struct{ pairs, groups, inCluster int }

// compare has the pairs played by the scheduler's code, and the first of them in a cluster, too. It
// prints what came of them. A false "never" is an error, and so is more than one false "fits now"
// in a thousand.
func compare(ctx context.Context, out io.Writer, release string, first uint64, play counts) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	minor, err := minorOf(release)
	if err != nil {
		return err
	}
	alone, err := newProgram(ctx, release)
	if err != nil {
		return err
	}
	t, each := newTally(out, "code of Kubernetes "+release, alone, minor), func(*pair) bool { return true }
	games := t.playAll(ctx, seeds(first, play.pairs, each), random)
	g := newTally(out, "groups, code of Kubernetes "+release, alone, minor)
	g.playAll(ctx, seeds(first, play.groups, each), randomGroup)
	if err := errors.Join(t.judgement(), g.judgement(), alone.stop(), ctx.Err()); err != nil || play.inCluster == 0 {
		return err
	}
	cluster, err := newCluster(ctx, release)
	if err != nil {
		return err
	}
	r := newTally(out, "cluster of Kubernetes "+release, cluster, minor)
	plain := seeds(first, play.pairs, (*pair).plain)
	inBoth := r.playAll(ctx, plain[:min(play.inCluster, len(plain))], random)
	err = errors.Join(r.judgement(), sameOutcomes(games, inBoth))
	cancel()
	return errors.Join(err, cluster.stop())
}

func minorOf(release string) (int, error) {
	version, err := version.ParseGeneric(release)
	if err != nil {
		return 0, err
	}
	return int(version.Minor()), nil //nolint:gosec // small
}

// sameOutcomes is an error where the scheduler's code, alone, did something else than in a cluster.
// Which of several nodes it takes is random, but not whether there is one for the first Pod.
func sameOutcomes(alone, inCluster []*game) error {
	var errs []error
	bySeed := map[uint64]*game{}
	for _, a := range alone {
		bySeed[a.seed] = a
	}
	for _, g := range inCluster {
		if a := bySeed[g.seed]; g.err == nil && (a.bound > 0 != (g.bound > 0) || a.empty != g.empty) {
			errs = append(errs, fmt.Errorf("seed %d: the scheduler's code binds %d Pods alone (empty cluster %v), and %d in a cluster (%v)",
				g.seed, a.bound, a.empty, g.bound, g.empty))
		}
	}
	return errors.Join(errs...)
}

// batch is how many pairs are played at once.
const batch = 32

// tally of the pairs that one player plays.
type tally struct {
	out      io.Writer
	title    string
	player   player
	minor    int // of the player's release
	played   int
	verdicts map[fmt.Stringer]int
	counts   map[difference]int
	// sure are those of which all Pods fit now, we say.
	sure int
	// failed pairs couldn't be played, the first of them for these reasons.
	failed int
	errs   []error
}

func newTally(out io.Writer, title string, by player, minor int) *tally {
	return &tally{out: out, title: title, player: by, minor: minor, verdicts: map[fmt.Stringer]int{}, counts: map[difference]int{}}
}

// seeds from the first one on, of pairs that are wanted.
func seeds(first uint64, pairs int, wanted func(*pair) bool) []uint64 {
	var list []uint64
	for seed := first; seed < first+uint64(pairs); seed++ { //nolint:gosec // not negative
		if wanted(random(seed)) {
			list = append(list, seed)
		}
	}
	return list
}

// playAll plays the pairs of some seeds.
func (t *tally) playAll(ctx context.Context, seeds []uint64, pairOf func(uint64) *pair) []*game {
	if len(seeds) == 0 {
		return nil
	}
	began := time.Now()
	var all []*game
	for some := range slices.Chunk(seeds, batch) {
		if ctx.Err() != nil {
			break
		}
		games := make([]*game, len(some))
		for i, seed := range some {
			games[i] = &game{pair: pairOf(seed), id: fmt.Sprintf("pair%d", i), seed: seed, minor: t.minor}
		}
		t.player.play(ctx, games)
		for _, g := range games {
			t.add(ctx, g)
			g.pair, g.at = nil, nil // many of them would take much memory
		}
		all = append(all, games...)
	}
	took := time.Since(began)
	fmt.Fprintf(t.out, "%s: %d pairs (seeds %d to %d) in %v, %.1f a second: %v, all Pods fit now: %d; differences: %v\n",
		t.title, t.played, seeds[0], seeds[len(seeds)-1], took.Round(time.Second/10), float64(t.played)/took.Seconds(), t.verdicts, t.sure, t.counts)
	return all
}

// add counts a game, and shows the first that differ.
func (t *tally) add(ctx context.Context, g *game) {
	if g.err != nil {
		if t.failed++; t.failed <= shown {
			t.errs = append(t.errs, fmt.Errorf("seed %d: %w", g.seed, g.err))
		}
		return
	}
	t.played++
	t.verdicts[g.answer.Verdict]++
	if g.sure {
		t.sure++
	}
	found := g.difference()
	if found == "" {
		return
	}
	t.counts[found]++
	if t.counts[found] > shown {
		return
	}
	fmt.Fprintf(t.out, "seed %d: %s\n%s\n", g.seed, found, shrink(ctx, t.player, "smaller", g))
}

// shown is how many differences of a kind are made small and printed.
const shown = 5

func (t *tally) judgement() error {
	if t.failed > shown {
		t.errs = append(t.errs, fmt.Errorf("%d pairs in all couldn't be played", t.failed))
	}
	if n := t.counts[falseNever]; n > 0 {
		t.errs = append(t.errs, fmt.Errorf("%s: %d of %d: %s", t.title, n, t.played, falseNever))
	}
	if n := t.counts[asymmetric]; n > 0 {
		t.errs = append(t.errs, fmt.Errorf("%s: %d of %d: %s", t.title, n, t.played, asymmetric))
	}
	if n := t.counts[falseNow]; n*1000 > t.played {
		t.errs = append(t.errs, fmt.Errorf("%s: %d of %d: %s", t.title, n, t.played, falseNow))
	}
	return errors.Join(t.errs...)
}
