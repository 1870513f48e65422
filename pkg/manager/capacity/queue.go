package capacity

import (
	"container/list"
	"slices"
)

// queue has the claims of one shape that don't hold all they want, the oldest first. Where one of
// them doesn't fit, none does.
type queue struct {
	shape  string
	claims *list.List
}

// queueUp makes the claim wait if it's short of slots, and stops it if it isn't.
func (l *Ledger) queueUp(c *claim) {
	switch {
	case c.unheld > 0 && c.waits == nil:
		c.waits = l.queueOf(c.shape.Key()).claims.PushBack(c)
	case c.unheld == 0 && c.waits != nil:
		q := l.queueOf(c.shape.Key())
		q.claims.Remove(c.waits)
		c.waits = nil
		if q.claims.Len() == 0 {
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
	q := &queue{shape: shape, claims: list.New()}
	l.queues = append(l.queues, q)
	return q
}

// offer gives a node's room to the claims that wait.
func (l *Ledger) offer(n *node) {
	if n.object == nil {
		return
	}
	for _, q := range slices.Clone(l.queues) {
		for e := q.claims.Front(); e != nil; {
			c := e.Value.(*claim)
			e = e.Next()
			count := min(c.unheld, c.fits(n))
			if count == 0 && !c.shape.OnePerNode() {
				break
			}
			l.hold(c, n, count)
			l.queueUp(c)
		}
	}
}
