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
	if j := l.jobs[but]; j != nil && j.reservation != nil && j.reservation.unheld > 0 {
		return l.demandsBut(j.reservation)
	}
	if l.demands == nil {
		l.demands = l.demandsBut(nil)
	}
	return l.demands
}

func (l *Ledger) demandsBut(left *reservation) *Demands {
	d, at := &Demands{}, map[string]int{}
	for lane := range l.lanes.all {
		for q := range lane.all {
			for e := q.reservations.Front(); e != nil; e = e.Next() {
				c := e.Value.(*reservation)
				if c == left || c.unheld == 0 {
					continue
				}
				i, is := at[q.shape]
				if !is {
					i = len(d.List)
					at[q.shape], d.List = i, append(d.List, Demand{Shape: c.shape})
				}
				d.List[i].Pods += c.unheld
			}
		}
	}
	return d
}
