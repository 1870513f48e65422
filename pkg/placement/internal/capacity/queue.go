package capacity

import (
	"cmp"
	"container/list"
	"slices"
)

// queue has the reservations of one shape that don't hold all they want, the oldest first. Where
// one of them doesn't fit, none does.
type queue struct {
	shape        string
	reservations list.List
	// place is where it is among all queues of its lane.
	place *list.Element
}

// lane has the queues of one namespace, one per shape, in the order in which they came to be. A
// worker may have one for each of its Pods.
type lane struct {
	namespace string
	byShape   map[string]*queue
	order     list.List
	// moving are those of its reservations that no longer fit where they were, or that no node was
	// sought for yet.
	moving list.List
	// offered is the last change of a node after which that was offered to it.
	offered uint64
	// place is where it is among all lanes, and movingPlace among those that move.
	place, movingPlace *list.Element
}

// lanes are one per namespace, in the order in which they came to be, or last got something of a
// node that was offered to all.
type lanes struct {
	byNamespace map[string]*lane
	order       list.List
	// moving are those of which reservations move, in the order in which they began.
	moving list.List
}

// all are the queues. The one that is read may be removed.
func (a *lane) all(yield func(*queue) bool) { each(&a.order, yield) }

// all are the lanes. The one that is read may be removed.
func (s *lanes) all(yield func(*lane) bool) { each(&s.order, yield) }

// thatMove are the lanes of which reservations move. The one that is read may move no more.
func (s *lanes) thatMove(yield func(*lane) bool) { each(&s.moving, yield) }

func each[T any](order *list.List, yield func(T) bool) {
	for at := order.Front(); at != nil; {
		of := at.Value.(T)
		if at = at.Next(); !yield(of) {
			return
		}
	}
}

// updateQueue queues a reservation that lacks slots, and takes it off the queue otherwise. While it
// moves it demands what it demanded before: it may find nodes at once.
func (l *Ledger) updateQueue(c *reservation) {
	switch {
	case c.unheld > 0 && c.waits == nil:
		l.lanes.of(c.namespace, l.changes).add(c)
	case c.unheld == 0 && c.waits != nil:
		l.endMove(c)
		l.lanes.remove(c)
	}
	if c.moves == nil && c.unheld != c.demanded {
		l.eased = l.eased || c.unheld < c.demanded
		l.demands, c.demanded = nil, c.unheld
	}
}

// startMove has move seek nodes for a reservation that lacks slots.
func (l *Ledger) startMove(c *reservation) {
	a := l.lanes.of(c.namespace, l.changes)
	if c.waits == nil {
		a.add(c)
	}
	if c.moves != nil {
		return
	}
	if c.moves = a.moving.PushBack(c); a.moving.Len() == 1 {
		a.movingPlace = l.lanes.moving.PushBack(a)
	}
}

func (l *Ledger) endMove(c *reservation) {
	if c.moves == nil {
		return
	}
	a := l.lanes.byNamespace[c.namespace]
	a.moving.Remove(c.moves)
	if c.moves = nil; a.moving.Len() == 0 {
		l.lanes.moving.Remove(a.movingPlace)
	}
}

// isBehind reports whether an older one of its shape fits nowhere, and so it doesn't.
func (a *lane) isBehind(c *reservation) bool {
	oldest := a.byShape[c.shape.key].reservations.Front().Value.(*reservation)
	return oldest != c && oldest.moves == nil && !c.shape.OnePerNode()
}

// of a namespace is its lane. What begins a new one is compared with all nodes by itself.
func (s *lanes) of(namespace string, changes uint64) *lane {
	a := s.byNamespace[namespace]
	if a == nil {
		a = &lane{namespace: namespace, byShape: map[string]*queue{}, offered: changes}
		a.place = s.order.PushBack(a)
		s.byNamespace[namespace] = a
	}
	return a
}

func (a *lane) add(c *reservation) {
	q := a.byShape[c.shape.key]
	if q == nil {
		q = &queue{shape: c.shape.key}
		q.place = a.order.PushBack(q)
		a.byShape[q.shape] = q
	}
	c.waits = q.reservations.PushBack(c)
}

func (s *lanes) remove(c *reservation) {
	a := s.byNamespace[c.namespace]
	q := a.byShape[c.shape.key]
	q.reservations.Remove(c.waits)
	c.waits = nil
	if q.reservations.Len() == 0 {
		a.order.Remove(q.place)
		delete(a.byShape, q.shape)
	}
	if a.order.Len() == 0 {
		s.order.Remove(a.place)
		delete(s.byNamespace, a.namespace)
	}
}

// offerAll offers what is free on nodes to each lane; one that gets something is the last the next
// time. What is too much is left: see OnLeft.
func (l *Ledger) offerAll(changed []*node) {
	for _, n := range changed {
		n.change = 0
	}
	l.offering = slices.DeleteFunc(l.offering, func(n *node) bool { return n.change == 0 })
	for _, n := range changed {
		l.changes++
		n.change = l.changes
	}
	l.offering = append(l.offering, changed...)
	if len(l.offering) == 0 || len(changed) == 0 && l.continues { // what was left is left until Continue
		return
	}
	least := l.changes
	for a := range l.lanes.all {
		if l.shares.areOver() {
			return
		}
		for _, n := range l.offering[l.after(a.offered):] {
			if !l.shares.allow(a.namespace) {
				break
			}
			l.offer(n, a)
			a.offered = n.change
		}
		least = min(least, a.offered)
	}
	l.offering = slices.Delete(l.offering, 0, l.after(least))
}

// after a change is where the nodes that have changed since begin among those that are offered.
func (l *Ledger) after(change uint64) int {
	at, _ := slices.BinarySearchFunc(l.offering, change+1, func(n *node, change uint64) int { return cmp.Compare(n.change, change) })
	return at
}

// offer gives what is free on a node to the reservations that wait in a lane.
func (l *Ledger) offer(n *node, a *lane) {
	if n.object == nil {
		return
	}
	for q := range a.all {
		for e := q.reservations.Front(); e != nil; {
			c := e.Value.(*reservation)
			e = e.Next()
			l.shares.count(c.namespace, c.shape.work)
			count := min(c.unheld, c.fits(n))
			if count == 0 && !c.shape.OnePerNode() {
				break
			}
			if l.hold(c, n, count); count > 0 {
				l.lanes.order.MoveToBack(a.place)
			}
			l.updateQueue(c)
		}
	}
}
