package capacity

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
)

// MaxDemands bounds the Shapes that are looked at of Pods that no node has room for.
const MaxDemands = 200

// Demand is Pods of one Shape that no node has room for.
type Demand struct {
	Shape *Shape
	Pods  int64
}

// Demands are those of one worker. Immutable: as long as they don't change, the Ledger returns the
// same ones.
type Demands struct{ List []Demand }

// Demands are the Pods that no node has room for, but for those of one Job: an autoscaler adds
// nodes for them. No Job has the zero key. Calling it once has the Ledger notify when there is less
// of it, too.
func (l *Ledger) Demands(but types.NamespacedName) *Demands {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.demandsFor(but)
}

func (l *Ledger) demandsFor(but types.NamespacedName) *Demands {
	l.grows = true
	if j := l.jobs[but]; j != nil && j.reservation != nil && j.reservation.demanded > 0 {
		return l.demandsBut(j.reservation)
	}
	if l.demands == nil {
		l.demands = l.demandsBut(nil)
	}
	return l.demands
}

// demandsBut has namespaces take turns, until there are MaxDemands, and as many of other Shapes
// were left out.
func (l *Ledger) demandsBut(left *reservation) *Demands {
	var rest []*list.Element // the next queue of each namespace
	for ns := range l.queues.all {
		rest = append(rest, ns.order.Front())
	}
	d, at, leftOut := &Demands{}, map[string]int{}, 0
	for len(rest) > 0 {
		more := rest[:0]
		for _, from := range rest {
			demand, next := firstDemand(from, left)
			if demand.Pods == 0 {
				continue
			}
			i, is := at[demand.Shape.key]
			switch {
			case is:
				d.List[i].Pods += demand.Pods
			case len(d.List) < MaxDemands:
				at[demand.Shape.key], d.List = len(d.List), append(d.List, demand)
			case leftOut == MaxDemands:
				return d
			default:
				leftOut++
			}
			more = append(more, next)
		}
		rest = more
	}
	return d
}

// firstDemand is that of the first queue of a namespace that has one, from some queue on, and the
// queue behind it.
func firstDemand(at *list.Element, left *reservation) (first Demand, next *list.Element) {
	for ; at != nil && first.Pods == 0; at = at.Next() {
		first = at.Value.(*queue).demand(left)
	}
	return first, at
}

func (q *queue) demand(left *reservation) (demand Demand) {
	for e := q.reservations.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*reservation); c != left {
			demand.Shape = c.shape
			demand.Pods += c.demanded
		}
	}
	return demand
}
