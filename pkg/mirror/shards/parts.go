package shards

import "slices"

// setPart changes a part, and with it what can be taken from the shard.
func (d *division) setPart(w *worker, part int) {
	d.pool -= w.movable()
	w.Parallelism = int32(part)
	d.pool += w.movable()
}

func (d *division) sumOfParts() int {
	sum := 0
	for _, w := range d.workers {
		sum += int(w.Parallelism)
	}
	return sum
}

// raiseParts raises the parts of shards, and then those of workers without one, until there are as
// many Pods as are wanted, or no room. What it lacks is taken from parts that are larger than what
// their shards can use.
//
// A part changes in steps of an eighth, and falls in steps of a quarter, so that the mirrors aren't
// written for each Pod that ends.
func (d *division) raiseParts() {
	d.revive()
	lacking, spare := d.wanted(), d.parallelism-d.sumOfParts()
	for _, w := range d.workers {
		lacking -= d.useful(w)
		if surplus := int(w.Parallelism) - d.useful(w); !w.Stopping && 4*surplus >= int(w.Parallelism) {
			w.surplus = surplus
			spare += surplus
		}
	}
	lacking = min(lacking, spare)
	places := -1
	for _, w := range d.workers {
		if w.isNew && places < 0 {
			places = d.places()
		}
		give := min(lacking, d.usable(w)-int(w.Parallelism))
		switch {
		case give <= 0, w.isNew && places == 0:
			continue
		case w.isNew:
			places--
		case give < lacking && 8*give < int(w.Parallelism):
			continue
		}
		d.setPart(w, int(w.Parallelism)+give)
		w.surplus = 0
		lacking -= give
	}
	d.lowerSurplus()
	d.missing = d.countMissing()
}

// revive gives each shard that has something left a part, and takes it where nothing is left for
// one: what it has may be less than a share of anybody, and would wait for ever.
func (d *division) revive() {
	for _, w := range d.workers {
		if w.isNew || w.Stopping || w.Parallelism > 0 || w.keeps == 0 || !w.room.Open || w.room.Pods == 0 {
			continue
		}
		if d.sumOfParts() >= d.parallelism {
			i := slices.IndexFunc(d.workers, func(o *worker) bool { return !o.Stopping && int(o.Parallelism) > o.left() })
			if i < 0 {
				continue
			}
			d.setPart(d.workers[i], int(d.workers[i].Parallelism)-1)
		}
		d.setPart(w, 1)
	}
}

// countMissing returns how many of the Pods that are wanted have no room yet. A shard that can
// grow, or be replaced when it has ended, has room for its part.
func (d *division) countMissing() int {
	if d.limit <= 1 {
		return 0
	}
	missing := d.wanted()
	for _, w := range d.workers {
		if w.room.Open && !w.Stopping {
			missing -= int(w.Parallelism)
		} else {
			missing -= d.useful(w)
		}
	}
	return max(missing, 0)
}

// lowerSurplus makes the parts add up to the Job's parallelism again: the worst workers first.
func (d *division) lowerSurplus() {
	over := d.sumOfParts() - d.parallelism
	for i := len(d.workers) - 1; i >= 0 && over > 0; i-- {
		w := d.workers[i]
		cut := min(w.surplus, over)
		d.setPart(w, int(w.Parallelism)-cut)
		over -= cut
	}
}

// wanted is the number of Pods to run at once beside those of shards that are stopping.
func (d *division) wanted() int {
	may, remaining := d.parallelism, d.unassigned.Len()
	for _, w := range d.workers {
		if w.Stopping {
			may -= int(w.Parallelism)
		} else {
			remaining += w.left()
		}
	}
	return min(may, remaining)
}

// useful is how much of its part a shard can use; none if it is stopping.
func (d *division) useful(w *worker) int {
	if w.Stopping {
		return 0
	}
	return min(int(w.Parallelism), d.usable(w))
}

// usable is the largest part that a shard can use, with what it may be assigned now.
func (d *division) usable(w *worker) int {
	part, room := int(w.Parallelism), int(w.room.Pods)
	switch {
	case !w.room.Open || w.Stopping:
		return min(part, w.left())
	case !w.takes():
		return min(max(part, room), w.left())
	case w.isElastic():
		return min(max(part, room), w.left()+d.available(w))
	default:
		return min(room, d.available(w))
	}
}

// available is what could be assigned to a worker beside what it has.
func (d *division) available(w *worker) int {
	return d.pool - w.movable() - w.returning.Len()
}

// places is how many workers can get their first shard.
func (d *division) places() int {
	places := d.limit
	for _, w := range d.workers {
		if !w.isNew && !d.isDispensable(w) {
			places--
		}
	}
	return max(places, 0)
}
