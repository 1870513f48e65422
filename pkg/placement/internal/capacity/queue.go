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
	// place is where it is among all queues of its namespace.
	place *list.Element
}

// namespaceQueues has the queues of one namespace, one per shape, in the order in which they came
// to be. A worker may have one for each of its Pods.
type namespaceQueues struct {
	namespace string
	byShape   map[string]*queue
	order     list.List
	// pending are those of its reservations for which nodes are to be found: they no longer fit where
	// they were, or have just come.
	pending list.List
	// offered is the last change of a node after which that was offered to it.
	offered uint64
	// place is where it is among all namespaces, and pendingPlace among those with pending ones.
	place, pendingPlace *list.Element
}

// queues are those of all namespaces, in the order in which these came to be, or last got something
// of a node that was offered to all.
type queues struct {
	byNamespace map[string]*namespaceQueues
	order       list.List
	// pending are the namespaces with pending reservations, in the order in which they got some.
	pending list.List
}

// all are the queues. The one that is read may be removed.
func (ns *namespaceQueues) all(yield func(*queue) bool) { inOrder(&ns.order, yield) }

// all are the namespaces' queues. Those that are read may be removed.
func (s *queues) all(yield func(*namespaceQueues) bool) { inOrder(&s.order, yield) }

// withPending are those of namespaces with pending reservations. What is read may have none then.
func (s *queues) withPending(yield func(*namespaceQueues) bool) { inOrder(&s.pending, yield) }

func inOrder[T any](order *list.List, yield func(T) bool) {
	for at := order.Front(); at != nil; {
		of := at.Value.(T)
		if at = at.Next(); !yield(of) {
			return
		}
	}
}

// updateQueue queues a reservation that lacks slots, and takes it off the queue otherwise. While it
// is pending it demands what it demanded before: it may find nodes at once.
func (l *Ledger) updateQueue(c *reservation) {
	switch {
	case c.unheld > 0 && c.waits == nil:
		l.queues.of(c.namespace, l.changes).add(c)
	case c.unheld == 0 && c.waits != nil:
		l.endPending(c)
		l.queues.remove(c)
	}
	if c.pending == nil && c.unheld != c.demanded {
		l.eased = l.eased || c.unheld < c.demanded
		l.demands, c.demanded = nil, c.unheld
	}
}

// setPending queues a reservation that lacks slots, and has findNodes find nodes for it.
func (l *Ledger) setPending(c *reservation) {
	ns := l.queues.of(c.namespace, l.changes)
	if c.waits == nil {
		ns.add(c)
	}
	if c.pending != nil {
		return
	}
	if c.pending = ns.pending.PushBack(c); ns.pending.Len() == 1 {
		ns.pendingPlace = l.queues.pending.PushBack(ns)
	}
}

func (l *Ledger) endPending(c *reservation) {
	if c.pending == nil {
		return
	}
	ns := l.queues.byNamespace[c.namespace]
	ns.pending.Remove(c.pending)
	if c.pending = nil; ns.pending.Len() == 0 {
		l.queues.pending.Remove(ns.pendingPlace)
	}
}

// isBehind reports whether an older one of its shape fits nowhere, and so it doesn't.
func (ns *namespaceQueues) isBehind(c *reservation) bool {
	oldest := ns.byShape[c.shape.key].reservations.Front().Value.(*reservation)
	return oldest != c && oldest.pending == nil && !c.shape.OnePerNode()
}

// of a namespace are its queues. What begins new ones is compared with all nodes by itself.
func (s *queues) of(namespace string, changes uint64) *namespaceQueues {
	ns := s.byNamespace[namespace]
	if ns == nil {
		ns = &namespaceQueues{namespace: namespace, byShape: map[string]*queue{}, offered: changes}
		ns.place = s.order.PushBack(ns)
		s.byNamespace[namespace] = ns
	}
	return ns
}

func (ns *namespaceQueues) add(c *reservation) {
	q := ns.byShape[c.shape.key]
	if q == nil {
		q = &queue{shape: c.shape.key}
		q.place = ns.order.PushBack(q)
		ns.byShape[q.shape] = q
	}
	c.waits = q.reservations.PushBack(c)
}

func (s *queues) remove(c *reservation) {
	ns := s.byNamespace[c.namespace]
	q := ns.byShape[c.shape.key]
	q.reservations.Remove(c.waits)
	c.waits = nil
	if q.reservations.Len() == 0 {
		ns.order.Remove(q.place)
		delete(ns.byShape, q.shape)
	}
	if ns.order.Len() == 0 {
		s.order.Remove(ns.place)
		delete(s.byNamespace, ns.namespace)
	}
}

// offerAll offers what is free on nodes to each namespace; one that gets something is the last the
// next time. What is too much is left: see OnLeft.
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
	for ns := range l.queues.all {
		if l.shares.areOver() {
			return
		}
		for _, n := range l.offering[l.after(ns.offered):] {
			if !l.shares.allow(ns.namespace) {
				break
			}
			l.offer(n, ns)
			ns.offered = n.change
		}
		least = min(least, ns.offered)
	}
	l.offering = slices.Delete(l.offering, 0, l.after(least))
}

// countDeferred is how many namespaces have something left, asked for it or not.
func (l *Ledger) countDeferred() (count int) {
	for ns := range l.queues.all {
		if ns.pending.Len() > 0 || l.after(ns.offered) < len(l.offering) {
			count++
		}
	}
	return count
}

// after a change is where the nodes that have changed since begin among those that are offered.
func (l *Ledger) after(change uint64) int {
	at, _ := slices.BinarySearchFunc(l.offering, change+1, func(n *node, change uint64) int { return cmp.Compare(n.change, change) })
	return at
}

// offer gives what is free on a node to the reservations of a namespace that wait.
func (l *Ledger) offer(n *node, ns *namespaceQueues) {
	if n.object == nil {
		return
	}
	for q := range ns.all {
		for e := q.reservations.Front(); e != nil; {
			c := e.Value.(*reservation)
			e = e.Next()
			l.shares.count(c.namespace, c.shape.WorkOn(n.object))
			count := min(c.unheld, c.fits(n))
			if count == 0 && !c.shape.OnePerNode() {
				break
			}
			if l.hold(c, n, count); count > 0 {
				l.shares.count(c.namespace, holdWork)
				l.queues.order.MoveToBack(ns.place)
			}
			l.updateQueue(c)
		}
	}
}
