package capacity

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// Occupant is a Job with a reservation, and the nodes on which its Pods are or will be.
type Occupant struct {
	Job types.NamespacedName
	// Unit is what each of its Pods takes.
	Unit Resources
	// There may be very many: one for each of its Pods.
	nodes []onNode
}

type onNode struct {
	name string
	pods int64
}

// Pods are how many Pods it has on nodes, by their names. A node may come twice.
func (o *Occupant) Pods() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for i := range o.nodes {
			if !yield(o.nodes[i].name, o.nodes[i].pods) {
				return
			}
		}
	}
}

// Occupants are the Jobs with a reservation that take room on some node.
func (l *Ledger) Occupants() []Occupant {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Occupant
	for _, jobs := range l.reserved {
		for j := range jobs {
			if o, is := j.occupant(); is {
				all = append(all, o)
			}
		}
	}
	return all
}

// Occupant is one Job of these; false: it has no reservation, or takes no room.
func (l *Ledger) Occupant(job types.NamespacedName) (Occupant, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[job].occupant()
}

func (j *job) occupant() (Occupant, bool) {
	if j == nil || j.reservation == nil {
		return Occupant{}, false
	}
	bound, held := j.reservation.bound, j.reservation.held
	o := Occupant{Job: j.key, Unit: j.reservation.shape.Unit(), nodes: make([]onNode, 0, len(bound)+len(held))}
	for _, taken := range []slots{bound, held} {
		for n, count := range taken {
			if n.object != nil {
				o.nodes = append(o.nodes, onNode{n.name, count})
			}
		}
	}
	return o, len(o.nodes) > 0
}
