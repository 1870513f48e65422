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
	names     *list.List
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
		q.of[key.Namespace] = q.namespaces.PushBack(&namespaceNames{key.Namespace, list.New()})
	}
	q.at[key] = q.of[key.Namespace].Value.(*namespaceNames).names.PushBack(key.Name)
}

// Remove has an object wait no more.
func (q *Queue) Remove(key types.NamespacedName) {
	e := q.at[key]
	if e == nil {
		return
	}
	delete(q.at, key)
	in := q.of[key.Namespace]
	if names := in.Value.(*namespaceNames).names; names.Len() > 1 {
		names.Remove(e)
		return
	}
	q.namespaces.Remove(in)
	delete(q.of, key.Namespace)
}

// Next takes out at most so many objects whose turn it is.
func (q *Queue) Next(most int) (keys []types.NamespacedName) {
	for len(keys) < most && q.Len() > 0 {
		in := q.namespaces.Front()
		w := in.Value.(*namespaceNames)
		key := types.NamespacedName{Namespace: w.namespace, Name: w.names.Front().Value.(string)}
		q.namespaces.MoveToBack(in)
		q.Remove(key)
		keys = append(keys, key)
	}
	return keys
}
