// Package turns lets objects take turns that wait for something: one of each namespace after the
// other, in the order of their coming.
package turns

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
)

// Queue has objects that wait for something, each once. Namespaces take turns, so that one that has
// many objects delays those of the others by one at a time. One goroutine at a time may use it.
type Queue struct {
	namespaces *list.List // of *namespaceNames; the next one first
	of         map[string]*list.Element
	at         map[types.NamespacedName]*list.Element
}

// namespaceNames are the names of a namespace's objects.
type namespaceNames struct {
	namespace string
	names     *list.List // of place
	// left is how many have been in the list, and aren't any more.
	left int
}

// place is an object's, and how many have been in the list before it.
type place struct {
	name   string
	before int
}

// NewQueue returns a queue in which nothing waits.
func NewQueue() *Queue {
	return &Queue{namespaces: list.New(), of: map[string]*list.Element{}, at: map[types.NamespacedName]*list.Element{}}
}

// Len is how many objects wait.
func (q *Queue) Len() int { return len(q.at) }

// Add has an object wait, unless it does.
func (q *Queue) Add(key types.NamespacedName) {
	if q.at[key] != nil {
		return
	}
	if q.of[key.Namespace] == nil {
		q.of[key.Namespace] = q.namespaces.PushBack(&namespaceNames{namespace: key.Namespace, names: list.New()})
	}
	of := q.of[key.Namespace].Value.(*namespaceNames)
	q.at[key] = of.names.PushBack(place{key.Name, of.left + of.names.Len()})
}

// Remove has an object wait no more.
func (q *Queue) Remove(key types.NamespacedName) {
	e := q.at[key]
	if e == nil {
		return
	}
	delete(q.at, key)
	in := q.of[key.Namespace]
	if of := in.Value.(*namespaceNames); of.names.Len() > 1 {
		of.names.Remove(e)
		of.left++
		return
	}
	q.namespaces.Remove(in)
	delete(q.of, key.Namespace)
}

// Has reports whether an object waits.
func (q *Queue) Has(key types.NamespacedName) bool { return q.at[key] != nil }

// Ahead is how many turns come before that of an object that waits, if no others come. It's too few
// if objects behind it have left.
func (q *Queue) Ahead(key types.NamespacedName) int {
	own := q.of[key.Namespace]
	before := max(q.at[key].Value.(place).before-own.Value.(*namespaceNames).left, 0)
	ahead := before
	for other := q.namespaces.Front(); other != nil; other = other.Next() {
		if other != own {
			ahead += min(other.Value.(*namespaceNames).names.Len(), before+1)
		}
	}
	return ahead
}

// Next takes out at most so many objects whose turn it is.
func (q *Queue) Next(most int) (keys []types.NamespacedName) {
	for len(keys) < most && q.Len() > 0 {
		in := q.namespaces.Front()
		w := in.Value.(*namespaceNames)
		key := types.NamespacedName{Namespace: w.namespace, Name: w.names.Front().Value.(place).name}
		q.namespaces.MoveToBack(in)
		q.Remove(key)
		keys = append(keys, key)
	}
	return keys
}
