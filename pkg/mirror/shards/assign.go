package shards

import (
	"cmp"
	"math"
	"slices"
)

// assign gives what is unassigned to those who run dry first, and asks elastic shards for what is
// lacking.
func (d *division) assign() {
	parts := 0
	for _, w := range d.workers {
		if w.part() > 0 {
			parts++
			d.elastic = d.elastic || w.takes() && w.room.Elastic
		}
	}
	d.alone = parts == 1 && d.missing == 0
	level := d.solve()
	takers := d.takers()
	d.allot(takers, level)
	d.cut(takers)
	d.ask(level)
}

// takers are the workers that can be assigned something, those who run dry first in front.
func (d *division) takers() []*worker {
	var takers []*worker
	for _, w := range d.workers {
		if w.takes() && w.part() > 0 {
			takers = append(takers, w)
		}
	}
	slices.SortStableFunc(takers, func(a, b *worker) int {
		return cmp.Compare(a.keeps*b.part(), b.keeps*a.part())
	})
	return takers
}

// allot decides how many completions each taker gets, and how many it lacks.
func (d *division) allot(takers []*worker, level float64) {
	free, reserved := d.unassigned.Len(), whole(d.reserve(level))
	var served []*worker
	for i, w := range takers {
		due := max(whole(d.share(w, level))-w.keeps, 0)
		switch {
		case w.room.Elastic && d.missing > 0 && !w.isHungry(due):
			reserved += due
			continue
		case w.room.Elastic:
			w.gets = min(w.elasticAllotment(due), free)
		case due > free && free < w.part() && d.isMoreToCome(level):
			// What it gets now is all that it can get until this has ended.
			w.lacks, free = due, 0
			continue
		default:
			if isLast := i == len(takers)-1; isLast && d.leavesLittle(w, due, free) {
				due = free
			}
			w.gets = min(due, free)
		}
		if !w.room.Elastic || w.isHungry(due) {
			w.lacks = max(due-w.gets, 0)
		}
		free -= w.gets
		served = append(served, w)
	}
	d.allotRest(served, free-reserved)
}

// elasticAllotment is not too small for a change of the mirror: a quarter of the part, if so many
// slots are free.
func (w *worker) elasticAllotment(due int) int {
	if due == 0 {
		return 0
	}
	return max(due, min(w.part()/4, w.part()-w.keeps))
}

// leavesLittle reports whether what a fixed shard would leave isn't worth a mirror.
func (d *division) leavesLittle(w *worker, due, free int) bool {
	return due > 0 && free-due < w.part() && !d.elastic && d.missing == 0
}

// allotRest allots what rounding has left, as if each taker got one completion in turn. As long as
// Pods have no room, no shard gets more than its part.
func (d *division) allotRest(takers []*worker, rest int) {
	for rest > 0 {
		takers = slices.DeleteFunc(takers, func(w *worker) bool { return d.mayGet(w) == 0 })
		if len(takers) == 0 {
			return
		}
		each := max(rest/len(takers), 1)
		for _, w := range takers {
			more := min(each, rest, d.mayGet(w))
			w.gets += more
			rest -= more
		}
	}
}

// mayGet is how many more completions of the rest a taker may get.
func (d *division) mayGet(w *worker) int {
	if d.missing == 0 {
		return math.MaxInt
	}
	return max(w.part()-w.keeps-w.gets, 0)
}

// whole rounds down, but for the error of what should be a whole number.
func whole(n float64) int { return int(n + 1e-6) }

// isHungry reports whether an elastic shard that lacks so many completions should get them now: it
// has less than half of its share, or will soon have slots and nothing to run in them.
func (w *worker) isHungry(due int) bool {
	return due > w.keeps || w.keeps < 2*w.part() && due >= max(1, w.part()/8)
}

// isMoreToCome reports whether elastic shards can give back something beside what is unassigned.
func (d *division) isMoreToCome(level float64) bool {
	return d.supply(d.giving(), level) >= float64(d.unassigned.Len()+1)
}

// cut assigns contiguous ranges, the lowest first. Of a shard that is replaced or grows, ranges
// that have nothing left are dropped: the text stays short. A number can only grow, so that the
// mirror of a portion can be told from that of the one before.
func (d *division) cut(takers []*worker) {
	free := d.unassigned.Indexes
	for _, w := range takers {
		if w.gets == 0 {
			continue
		}
		w.Parallelism = int32(w.part())
		if !d.indexed {
			w.Number += w.gets
			continue
		}
		low, high := free.Split(w.gets)
		free = high
		if !w.room.Elastic {
			w.Indexes = nil
		}
		w.Indexes = w.Indexes.Meeting(d.unsettled).Union(low)
	}
}

// ask has elastic shards give back what others lack, beside what they have been asked for: those
// with the most for their part first, the highest indexes first.
func (d *division) ask(level float64) {
	need := 0
	var givers []*worker
	for _, w := range d.workers {
		need += w.lacks - w.returning.Len()
		if w.gets == 0 && w.lacks == 0 && d.excess(w, w.movable(), level) >= 1 {
			givers = append(givers, w)
		}
	}
	slices.SortStableFunc(givers, func(a, b *worker) int {
		return cmp.Compare(b.keeps*int(a.Parallelism), a.keeps*int(b.Parallelism))
	})
	for _, w := range givers {
		if n := min(need, whole(d.excess(w, w.movable(), level))); n > 0 {
			if len(w.held) > 0 { // it keeps what it was asked for, and has no Pod for the rest
				n = w.todo.Len()
			}
			_, highest := w.todo.Split(w.todo.Len() - n)
			w.Returning = w.returning.Union(w.held).Union(highest).String()
			need -= n
		}
	}
}
