package shards

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// resting are takers with these parts, of which each has some completions.
func resting(rnd *rand.Rand) (takers []*worker) {
	for range 1 + rnd.IntN(5) {
		w := &worker{keeps: rnd.IntN(5), gets: rnd.IntN(5)}
		w.Parallelism = rnd.Int32N(10)
		takers = append(takers, w)
	}
	return takers
}

// A tenant's Job has as many completions as fit into a number: handed out one at a time, they would
// take centuries.
func TestARestIsAllottedAtOnce(t *testing.T) {
	a, b := &worker{}, &worker{}
	if (&division{}).allotRest([]*worker{a, b}, math.MaxInt); a.gets != math.MaxInt/2+1 || b.gets != math.MaxInt/2 {
		t.Errorf("%d and %d", a.gets, b.gets)
	}
}

// Each taker gets what it would if they got one completion each in turn.
func TestARestIsAllottedInTurn(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		takers, rest, d := resting(rnd), rnd.IntN(40)-5, &division{missing: rnd.IntN(2)}
		var want []int
		for _, w := range takers {
			want = append(want, w.gets)
		}
		left := rest
		for before := 0; left > 0 && left != before; {
			before = left
			for i, w := range takers {
				if left > 0 && (d.missing == 0 || w.keeps+want[i] < w.part()) {
					want[i]++
					left--
				}
			}
		}
		d.allotRest(slices.Clone(takers), rest)
		for i, w := range takers {
			if w.gets != want[i] {
				t.Fatalf("taker %d of %d gets %d, want %d", i, len(takers), w.gets, want[i])
			}
		}
	}
}
