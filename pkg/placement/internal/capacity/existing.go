package capacity

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// Existing is how many Pods of a Job there are, whether they have nodes or not. Those that have
// ended aren't watched.
func (l *Ledger) Existing(job types.NamespacedName) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j := l.jobs[job]; j != nil {
		return j.existing
	}
	return 0
}

// Awaited is what the Pods will take that don't exist yet, of all Jobs of the namespace but this
// one.
func (l *Ledger) Awaited(but types.NamespacedName) Resources {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads.Add(change.Change{Kinds: change.Admission, Namespace: but.Namespace})
	var sum Sum
	for j := range l.reserved[but.Namespace] {
		if j.key != but {
			sum.Add(&j.reservation.shape.unit, max(j.reservation.want-j.existing, 0))
		}
	}
	return sum.Total()
}

// fewerAwaited must be called when what is awaited of a Job may have become less: a quota has more
// left.
func (l *Ledger) fewerAwaited(j *job) {
	if j.reservation != nil && l.reads.Take(change.Change{Kinds: change.Admission, Namespace: j.key.Namespace}) {
		l.fell = append(l.fell, j.key.Namespace)
	}
}
