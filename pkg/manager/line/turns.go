package line

import (
	"container/heap"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
)

// turn is which Job of a namespace is judged without the lock, until its reconcile ends, and which
// others wait for that, the first in line first: who has many Jobs that take much work waits for
// himself.
type turn struct {
	of    types.NamespacedName
	known sets.Set[types.NamespacedName]
	next  inOrder
}

// hasTurnLocked reports whether it's a Job's turn. Otherwise it's enqueued when it is.
func (l *Line) hasTurnLocked(job *waiting.Job) bool {
	t := l.turns[job.Key.Namespace]
	if t == nil {
		t = &turn{of: job.Key, known: sets.New[types.NamespacedName]()}
		l.turns[job.Key.Namespace] = t
	}
	if t.of != job.Key && !t.known.Has(job.Key) {
		t.known.Insert(job.Key)
		heap.Push(&t.next, &waiting.Job{Key: job.Key, UID: job.UID, Priority: job.Priority, Created: job.Created})
	}
	return t.of == job.Key
}

// passTurnLocked ends a Job's turn. The first in line of those that wait has the next one; one that
// is gone by now passes it on.
func (l *Line) passTurnLocked(key types.NamespacedName) {
	t := l.turns[key.Namespace]
	switch {
	case t == nil || t.of != key:
	case len(t.next) == 0:
		delete(l.turns, key.Namespace)
	default:
		t.of = heap.Pop(&t.next).(*waiting.Job).Key //nolint:forcetypeassert // there are no others
		t.known.Delete(t.of)
		l.jobs.Enqueue(t.of)
	}
}

// inOrder is a heap of Jobs.
type inOrder []*waiting.Job

var _ heap.Interface = &inOrder{}

func (o inOrder) Len() int           { return len(o) }
func (o inOrder) Less(i, j int) bool { return waiting.Compare(o[i], o[j]) < 0 }
func (o inOrder) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }

// Push implements heap.Interface.
func (o *inOrder) Push(job any) { *o = append(*o, job.(*waiting.Job)) } //nolint:forcetypeassert // there are no others

// Pop implements heap.Interface.
func (o *inOrder) Pop() any {
	last := len(*o) - 1
	job := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return job
}
