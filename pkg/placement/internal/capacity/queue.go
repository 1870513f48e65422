package capacity

import (
	"container/list"
	"slices"
)

// queue has the reservations of one shape that don't hold all they want, the oldest first. Where
// one of them doesn't fit, none does.
type queue struct {
	shape        string
	reservations list.List
	// place is where it is among all queues.
	place *list.Element
}

// queues are one per shape, in the order in which they came to be. A worker may have one for each
// of its Pods.
type queues struct {
	byShape map[string]*queue
	order   list.List
}

// all are the queues. The one that is read may be removed.
func (s *queues) all(yield func(*queue) bool) {
	for at := s.order.Front(); at != nil; {
		q := at.Value.(*queue)
		if at = at.Next(); !yield(q) {
			return
		}
	}
}

// updateQueue queues a reservation that lacks slots, and takes it off the queue otherwise.
func (l *Ledger) updateQueue(c *reservation) {
	if c.unheld != c.queued {
		l.eased = l.eased || c.unheld < c.queued
		l.demands, c.queued = nil, c.unheld
	}
	switch {
	case c.unheld > 0 && c.waits == nil:
		l.queues.add(c)
	case c.unheld == 0 && c.waits != nil:
		l.queues.remove(c)
	}
}

func (s *queues) add(c *reservation) {
	q := s.byShape[c.shape.key]
	if q == nil {
		q = &queue{shape: c.shape.key}
		q.place = s.order.PushBack(q)
		s.byShape[q.shape] = q
	}
	c.waits = q.reservations.PushBack(c)
}

func (s *queues) remove(c *reservation) {
	q := s.byShape[c.shape.key]
	q.reservations.Remove(c.waits)
	c.waits = nil
	if q.reservations.Len() == 0 {
		s.order.Remove(q.place)
		delete(s.byShape, q.shape)
	}
}

// maxComparisons is about how often a change compares a reservation of a plain shape with a node,
// to move reservations and to offer what is free: a worker may have tens of thousands of shapes,
// and thousands of nodes.
const maxComparisons = 1_000_000

// offerAll offers what is free on nodes. Those that are too many are left: see OnLeft.
func (l *Ledger) offerAll(changed []*node) {
	for _, n := range changed {
		if !n.offers {
			n.offers = true
			l.offering = append(l.offering, n)
		}
	}
	offered := 0
	for ; offered < len(l.offering) && l.comparisons > 0; offered++ {
		n := l.offering[offered]
		n.offers = false
		l.offer(n)
	}
	l.offering = slices.Delete(l.offering, 0, offered)
}

// offer gives what is free on a node to the reservations that wait.
func (l *Ledger) offer(n *node) {
	if n.object == nil {
		return
	}
	for q := range l.queues.all {
		for e := q.reservations.Front(); e != nil; {
			c := e.Value.(*reservation)
			e = e.Next()
			l.comparisons -= c.shape.work
			count := min(c.unheld, c.fits(n))
			if count == 0 && !c.shape.OnePerNode() {
				break
			}
			l.hold(c, n, count)
			l.updateQueue(c)
		}
	}
}
