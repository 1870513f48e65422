package capacity

import "k8s.io/apimachinery/pkg/types"

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

// demandsBut has namespaces take turns: whoever looks at some sees those of each.
func (l *Ledger) demandsBut(left *reservation) *Demands {
	var lists [][]Demand
	for ns := range l.queues.all {
		if demands := ns.demands(left); len(demands) > 0 {
			lists = append(lists, demands)
		}
	}
	d, at := &Demands{}, map[string]int{}
	for len(lists) > 0 {
		rest := lists[:0]
		for _, demands := range lists {
			first := demands[0]
			if i, is := at[first.Shape.key]; is {
				d.List[i].Pods += first.Pods
			} else {
				at[first.Shape.key], d.List = len(d.List), append(d.List, first)
			}
			if len(demands) > 1 {
				rest = append(rest, demands[1:])
			}
		}
		lists = rest
	}
	return d
}

func (ns *namespaceQueues) demands(left *reservation) (demands []Demand) {
	for q := range ns.all {
		demand := Demand{}
		for e := q.reservations.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*reservation); c != left {
				demand.Shape = c.shape
				demand.Pods += c.demanded
			}
		}
		if demand.Pods > 0 {
			demands = append(demands, demand)
		}
	}
	return demands
}
