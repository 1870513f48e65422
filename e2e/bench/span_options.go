package bench

import (
	"errors"
	"time"
)

// SpanOptions choose what is measured of one Job over several workers.
type SpanOptions struct {
	// Common has 5 workers by default.
	Common
	// Indexes of the Job. Default 100,000.
	Indexes int
	// Parallelism of the Job. Default 1,000.
	Parallelism int
	// Room is how many Pods fit in each worker. Default, or 0: so many that the workers that are
	// left at the end hold all that may run at once, but no worker does alone. Then the parallelism
	// is the limit all along, as it is in one cluster.
	Room int
	// RunFor is how long each Pod runs. Default 25 s: 40 Pods per second.
	RunFor time.Duration
	// Drain and Lose are the shares of the indexes that have completed when a worker is drained,
	// and when another one is cut off for good; 0: none is. Defaults a quarter and a half.
	Drain, Lose float64
	// LostAfter is the manager's worker-lost-timeout. The fence closes well before. Default 60 s.
	LostAfter time.Duration
	// Whole is whether the Job also runs in one cluster with the room of all. Default true.
	Whole bool
	// Small is how many indexes the Job has that the manager's memory is compared with; 0: none.
	// Default 100.
	Small int
	// Programs is a folder with the product's programs. Empty: they're built from the source around.
	Programs string
}

// DefaultSpanOptions returns the defaults.
func DefaultSpanOptions() SpanOptions {
	return SpanOptions{
		Indexes: 100_000, Common: common(5), Parallelism: 1000, RunFor: 25 * time.Second, Drain: 0.25, Lose: 0.5,
		LostAfter: time.Minute, Whole: true, Small: 100,
	}
}

// Validate reports all that can't be used.
func (o *SpanOptions) Validate() error {
	var p problems
	p.atLeast("indexes", o.Indexes, 1)
	p.atLeast("parallelism", o.Parallelism, 1)
	p.atLeast("room", o.Room, 0)
	p.atLeast("small", o.Small, 0)
	p.atLeast("workers", o.Workers, 1+o.faults())
	for name, share := range map[string]float64{"drain": o.Drain, "lose": o.Lose} {
		p.refuse(share < 0 || share >= 1, "%s: must be a share of the indexes from 0 to less than 1, not %g", name, share)
	}
	p.refuse(o.RunFor <= 0, "run-for: must be positive, but is %s", o.RunFor)
	p.refuse(o.LostAfter < 10*time.Second, "lost-after: must be at least 10s, not %s", o.LostAfter)
	return errors.Join(p...)
}

// faults is how many workers go on the way.
func (o *SpanOptions) faults() int {
	n := 0
	for _, share := range []float64{o.Drain, o.Lose} {
		if share > 0 {
			n++
		}
	}
	return n
}

// room is how many Pods fit in each worker.
func (o *SpanOptions) room() int {
	if o.Room > 0 {
		return o.Room
	}
	return divideUp(o.Parallelism, max(o.Workers-o.faults(), 2))
}
