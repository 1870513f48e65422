package shards

import "math"

// A fixed shard gets portions: each costs a new mirror, and a pause in which the slots that are
// done wait for the last Pod of the portion. A first portion that is the whole share would cost
// more where one worker is slower than another.
const (
	// portion is what it gets of its share.
	portion = 0.6
	// leastPortion is the smallest one, in completions per Pod.
	leastPortion = 4
)

// level is how many completions per Pod of its part each worker has when all that can be assigned
// is spread so that all would end at the same time, as water spreads. It is solved for by
// bisection.
func (d *division) level() float64 {
	low, high := 0.0, float64(d.pool)+1
	for range 64 {
		middle := (low + high) / 2
		if d.demand(middle) <= d.supply(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// demand is what all take to have the level.
func (d *division) demand(level float64) float64 {
	sum := d.reserve(level)
	for _, w := range d.workers {
		if w.takes() {
			sum += max(0, d.share(w, level)-float64(w.keeps))
		}
	}
	return sum
}

// supply is what there is for it at the level.
func (d *division) supply(level float64) float64 {
	sum := float64(d.unassigned.Len())
	for _, w := range d.workers {
		sum += float64(w.returning.Len()) + d.excess(w, level)
	}
	return sum
}

// excess is what a shard can give back and has above the level.
func (d *division) excess(w *worker, level float64) float64 {
	return min(float64(w.movable()), max(0, float64(w.keeps)-d.share(w, level)))
}

// share is how many completions a worker is to have at a level. An elastic one has some beyond
// those that it runs, so that it isn't idle until the hub has heard of it.
func (d *division) share(w *worker, level float64) float64 {
	part := float64(w.part())
	switch {
	case w.room.Elastic:
		return max(level*part, min(level, 1)*(part+math.Floor(part/4)))
	case !d.alone:
		return part * max(portion*level, min(level, leastPortion))
	default:
		return level * part
	}
}

// reserve is what stays unassigned at a level: for the Pods that have no room yet, and, if no
// elastic shard can give anything back, for the next portions of the fixed ones.
func (d *division) reserve(level float64) float64 {
	sum := level * float64(d.missing)
	if d.alone || d.elastic {
		return sum
	}
	for _, w := range d.workers {
		full := level * float64(w.part())
		switch {
		case w.takes():
			sum += full - d.share(w, level)
		case w.room.Open && !w.Stopping && !w.isNew:
			sum += max(0, full-float64(w.keeps))
		}
	}
	return sum
}

// part is the one that a shard has or, if it is replaced, can have.
func (w *worker) part() int {
	if !w.room.Elastic && w.takes() {
		return int(min(int64(w.Parallelism), w.room.Pods))
	}
	return int(w.Parallelism)
}
