package capacity

import "k8s.io/apimachinery/pkg/types"

// Occupant is a Job with a reservation, and the nodes on which its Pods are or will be.
type Occupant struct {
	Job types.NamespacedName
	// Unit is what each of its Pods takes.
	Unit Resources
	// Pods by the name of their node.
	Pods map[string]int64
}

// Occupants are the Jobs with a reservation that take room on some node.
func (l *Ledger) Occupants() []Occupant {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Occupant
	for key, j := range l.jobs {
		if j.reservation == nil {
			continue
		}
		o := Occupant{Job: key, Unit: j.reservation.shape.Unit(), Pods: map[string]int64{}}
		for _, taken := range []slots{j.reservation.bound, j.reservation.held} {
			for n, count := range taken {
				if _, exists := l.position(n.name); exists {
					o.Pods[n.name] += count
				}
			}
		}
		if len(o.Pods) > 0 {
			all = append(all, o)
		}
	}
	return all
}
