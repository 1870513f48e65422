package capacity

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// nobody is the key of no Job.
var nobody types.NamespacedName

// queues is how many queues there are, of all lanes.
func (l *Ledger) queues() (count int) {
	for a := range l.lanes.all {
		count += a.order.Len()
	}
	return count
}

// moving is how many reservations move, of all lanes.
func (l *Ledger) moving() (count int) {
	for a := range l.lanes.thatMove {
		count += a.moving.Len()
	}
	return count
}

func shape(j *capacitytest.JobBuilder) *Shape { return ShapeOf(&j.Obj().Spec.Template) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
