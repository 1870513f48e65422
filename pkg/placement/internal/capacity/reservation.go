package capacity

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
)

// reservation is what Pods will take that aren't bound yet: those of a Job, or one of nobody's. At
// any time
//
//	want = bound + held + unheld, or want < bound and held = unheld = 0
//
// where bound and held are the sums of their slots over nodes.
type reservation struct {
	number    uint64
	namespace string
	shape     *Shape
	want      int64
	bound     slots
	held      slots
	unheld    int64
	// demanded is unheld as the Ledger's demands have it.
	demanded int64
	// waits is the place in its queue; nil when it isn't in one.
	waits *list.Element
	// pending is the place among those of its namespace for which nodes are to be found; nil when it
	// isn't there.
	pending *list.Element
}

// slots counts Pods per node; nil: there are none, as most reservations hold none once their Pods
// are bound.
type slots map[*node]int64

func (s slots) sum() int64 {
	var n int64
	for _, count := range s {
		n += count
	}
	return n
}

// add changes one node's count; a count of zero isn't kept.
func (s *slots) add(n *node, count int64) {
	if *s == nil {
		*s = slots{}
	}
	if (*s)[n] += count; (*s)[n] == 0 {
		delete(*s, n)
	}
	if len(*s) == 0 {
		*s = nil
	}
}

func (l *Ledger) newReservation(namespace string, shape *Shape) *reservation {
	l.nextNumber++
	return &reservation{number: l.nextNumber, namespace: namespace, shape: shape}
}

// fits is how many more of its Pods fit on a node.
func (c *reservation) fits(n *node) int64 {
	if c.shape.OnePerNode() && (c.held[n] > 0 || c.bound[n] > 0) {
		return 0
	}
	view := n.look()
	// Free slots first: in a full cluster this saves the match of selectors.
	if fits := c.shape.Room(&view.Free); fits > 0 && n.object != nil && c.shape.Suits(n.object) {
		return fits
	}
	return 0
}

// adjust makes a reservation hold what it lacks, or give back what it has too much of. Slots on the
// near node are the first to be taken or given back; nil if no node is near.
func (l *Ledger) adjust(c *reservation, near *node) {
	short := max(c.want-c.bound.sum(), 0) - c.held.sum() - c.unheld
	if short < 0 {
		l.giveBack(c, -short, near)
		return
	}
	c.unheld += short
	if near != nil && c.unheld > 0 {
		l.hold(c, near, min(c.unheld, c.fits(near)))
	}
	if c.waits != nil { // it fits nowhere else, until something changes there
		l.updateQueue(c)
		return
	}
	l.allocate(c)
}

// giveBack releases slots: those of the near node, which a Pod has just taken; then those that
// aren't held; then those on the nodes where it holds most.
func (l *Ledger) giveBack(c *reservation, count int64, near *node) {
	if near != nil {
		taken := min(count, c.held[near])
		l.hold(c, near, -taken)
		count -= taken
	}
	taken := min(count, c.unheld)
	c.unheld -= taken
	count -= taken
	for _, n := range c.fullest(count) {
		taken = min(count, c.held[n])
		l.hold(c, n, -taken)
		count -= taken
	}
	l.updateQueue(c)
}

// fullest are nodes with that many of its slots, those where it holds most in front: mostly one.
func (c *reservation) fullest(count int64) []*node {
	if count == 0 {
		return nil
	}
	byHeld := func(a, b *node) int {
		return cmp.Or(cmp.Compare(c.held[b], c.held[a]), cmp.Compare(a.name, b.name))
	}
	nodes := slices.Collect(maps.Keys(c.held))
	if first := slices.MinFunc(nodes, byHeld); c.held[first] >= count {
		return []*node{first}
	}
	slices.SortFunc(nodes, byHeld)
	return nodes
}

// hold takes slots on a node out of unheld; a negative count releases them.
func (l *Ledger) hold(c *reservation, n *node, count int64) {
	if count == 0 {
		return
	}
	l.beforeChange(n)
	n.held.change(&c.shape.unit, count)
	if n.holders[c] += count; n.holders[c] == 0 {
		delete(n.holders, c)
	}
	c.held.add(n, count)
	if count > 0 {
		c.unheld -= count
	}
}

// allocate holds what fits of unheld, and queues the rest. It returns how many nodes have some.
func (l *Ledger) allocate(c *reservation) (nodes int) {
	if c.unheld > 0 {
		free := make([]int64, len(l.sorted))
		for i, n := range l.sorted {
			free[i] = c.fits(n)
		}
		for i, count := range spread(free, c.unheld) {
			if l.hold(c, l.sorted[i], count); count > 0 {
				nodes++
			}
		}
	}
	l.updateQueue(c)
	return nodes
}

// reallocateAll reallocates those of the changed nodes that need it, and returns the changed nodes
// with those that were left before. Crowded nodes that are too many are left: see OnLeft. What held
// slots on a node that is gone finds others by its share of comparisons, so this isn't left.
func (l *Ledger) reallocateAll(changed []*node) []*node {
	for _, n := range changed {
		switch isOff := n.overfull() || n.object != l.changed[n].Object; {
		case isOff && (n.object == nil || len(n.holders) <= fewHolders):
			l.reallocate(n)
		case isOff && !slices.Contains(l.crowded, n):
			l.crowded = append(l.crowded, n)
		}
	}
	for len(l.crowded) > 0 && l.shares.seats > 0 {
		n := l.crowded[0]
		l.crowded = slices.Delete(l.crowded, 0, 1)
		if _, is := l.changed[n]; !is {
			changed = append(changed, n)
		}
		l.shares.seats -= len(n.holders)
		l.reallocate(n)
	}
	return changed
}

// reallocate takes all reservations off a node and seats them again there. Those that don't fit
// move.
func (l *Ledger) reallocate(n *node) {
	holders := slices.SortedFunc(maps.Keys(n.holders), func(a, b *reservation) int { return cmp.Compare(a.number, b.number) })
	for _, c := range holders {
		count := n.holders[c]
		l.hold(c, n, -count)
		c.unheld += count
	}
	for _, c := range holders {
		if n.object != nil {
			l.hold(c, n, min(c.unheld, c.fits(n)))
		}
		if c.unheld > 0 {
			l.setPending(c)
		} else {
			l.updateQueue(c)
		}
	}
}

// findNodes finds nodes for pending reservations. Those that are too many are left: see OnLeft.
func (l *Ledger) findNodes() {
	for ns := range l.queues.withPending {
		if l.shares.areOver() {
			return
		}
		for ns.pending.Len() > 0 && l.shares.allow(ns.namespace) {
			c := ns.pending.Front().Value.(*reservation)
			if l.endPending(c); ns.isBehind(c) {
				l.updateQueue(c)
				continue
			}
			l.shares.count(ns.namespace, l.work(c.shape)+l.allocate(c)*holdWork)
		}
	}
}

// drop ends a reservation.
func (l *Ledger) drop(c *reservation) {
	for n, count := range maps.Clone(c.held) {
		l.hold(c, n, -count)
	}
	c.unheld = 0
	l.updateQueue(c)
}
