package capacity

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// nobody is the key of no Job.
var nobody types.NamespacedName

// countQueues is how many queues there are, of all namespaces.
func (l *Ledger) countQueues() (count int) {
	for ns := range l.queues.all {
		count += ns.order.Len()
	}
	return count
}

// countPending is how many reservations are pending, of all namespaces.
func (l *Ledger) countPending() (count int) {
	for ns := range l.queues.withPending {
		count += ns.pending.Len()
	}
	return count
}

func shape(j *JobBuilder) *Shape { return ShapeOf(&j.Obj().Spec.Template) }

// idOf a Job, of which builders make Pods.
func idOf(j *JobBuilder) objectnames.ID {
	return objectnames.ID{Namespace: j.Obj().Namespace, UID: j.Obj().UID}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
