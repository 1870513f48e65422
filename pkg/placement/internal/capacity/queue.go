package capacity

import (
	"container/list"
	"slices"
)

// queue has the reservations of one shape that don't hold all they want, the oldest first. Where
// one of them doesn't fit, none does.
type queue struct {
	shape        string
	reservations *list.List
}

// updateQueue queues a reservation that lacks slots, and takes it off the queue otherwise.
func (l *Ledger) updateQueue(c *reservation) {
	if c.unheld != c.queued {
		l.eased = l.eased || c.unheld < c.queued
		l.demands, c.queued = nil, c.unheld
	}
	switch {
	case c.unheld > 0 && c.waits == nil:
		c.waits = l.queueOf(c.shape.key).reservations.PushBack(c)
	case c.unheld == 0 && c.waits != nil:
		q := l.queueOf(c.shape.key)
		q.reservations.Remove(c.waits)
		c.waits = nil
		if q.reservations.Len() == 0 {
			l.queues = slices.DeleteFunc(l.queues, func(other *queue) bool { return other == q })
		}
	}
}

func (l *Ledger) queueOf(shape string) *queue {
	for _, q := range l.queues {
		if q.shape == shape {
			return q
		}
	}
	q := &queue{shape: shape, reservations: list.New()}
	l.queues = append(l.queues, q)
	return q
}

// offer gives what is free on a node to the reservations that wait.
func (l *Ledger) offer(n *node) {
	if n.object == nil {
		return
	}
	for _, q := range slices.Clone(l.queues) {
		for e := q.reservations.Front(); e != nil; {
			c := e.Value.(*reservation)
			e = e.Next()
			count := min(c.unheld, c.fits(n))
			if count == 0 && !c.shape.OnePerNode() {
				break
			}
			l.hold(c, n, count)
			l.updateQueue(c)
		}
	}
}
