package shards

// A fixed shard gets portions. Each further one costs a new mirror, and a pause in which the slots
// that are done wait for the last Pod of the portion before; but without them a slow worker would
// be the last for long. The figures are from the simulation: five fixed workers against one cluster
// with all their slots, for 20 and 100 Pods per slot; in brackets, if each had its whole share at
// once.
//
//	equal speeds                         1.07  1.10  (1.02  1.01)
//	speeds from 0.6 to 1.5               1.13  1.05  (1.62  1.69)
//	the same, exponential durations      1.38  1.14  (1.55  1.67)
//
// Up to 8 Pods per slot there is one portion. Five elastic workers need 1.00 to 1.09 times as long.
const (
	// portion is what a fixed shard gets of its share.
	portion = 0.6
	// leastPortion is the smallest portion, in completions per Pod.
	leastPortion = 8.0
)

// solve finds the level: how many completions per Pod of its part each worker has when all that can
// be assigned is spread so that all would end at the same time, as water spreads. What a fixed
// shard is not to have at once is put by; if there are elastic ones, these have it until then.
func (d *division) solve() float64 {
	d.reserving = !d.alone
	level := d.bisect()
	if d.alone || !d.elastic {
		return level
	}
	for _, w := range d.workers {
		w.portion = d.share(w, level)
	}
	d.reserving = false
	return d.bisect()
}

func (d *division) bisect() float64 {
	low, high, gives := 0.0, float64(d.pool)+1, d.giving()
	for range 64 {
		middle := (low + high) / 2
		if d.demand(middle) <= d.supply(gives, middle) {
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

// giving is what there is at any level, and what each shard can give back, by worker. To count the
// indexes of sets takes a while.
type giving struct {
	free    float64
	movable []int
}

func (d *division) giving() giving {
	g := giving{free: float64(d.unassigned.Len()), movable: make([]int, len(d.workers))}
	for i, w := range d.workers {
		g.free += float64(w.returning.Len())
		g.movable[i] = w.movable()
	}
	return g
}

// supply is what there is for it at the level.
func (d *division) supply(g giving, level float64) float64 {
	sum := g.free
	for i, w := range d.workers {
		sum += d.excess(w, g.movable[i], level)
	}
	return sum
}

// excess is what a shard that can give back so many has above the level.
func (d *division) excess(w *worker, movable int, level float64) float64 {
	return min(float64(movable), max(0, float64(w.keeps)-d.share(w, level)))
}

// share is how many completions a worker is to have at a level. An elastic one has some beyond
// those that it runs, so that it isn't idle until the hub has heard of it.
func (d *division) share(w *worker, level float64) float64 {
	part := float64(w.part())
	switch {
	case w.room.Elastic, d.alone:
		return level * part
	case d.reserving:
		return part * max(portion*level, min(level, leastPortion))
	default:
		return w.portion
	}
}

// reserve is what stays unassigned at a level: for the Pods that have no room yet, and, if no
// elastic shard can give anything back, for the next portions of the fixed ones.
func (d *division) reserve(level float64) float64 {
	sum := level * float64(d.missing)
	if !d.reserving {
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
