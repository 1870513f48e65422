package job

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
)

// fairQueue has Jobs that wait for something, each once. Namespaces take turns, so that one that
// has many Jobs delays those of the others by one Job at a time. A namespace's Jobs are in the
// order of their coming.
type fairQueue struct {
	namespaces *list.List // of *namespaceNames; the next one first
	of         map[string]*list.Element
	at         map[types.NamespacedName]*list.Element
}

// namespaceNames are the names of a namespace's Jobs.
type namespaceNames struct {
	namespace string
	names     *list.List
}

func newFairQueue() *fairQueue {
	return &fairQueue{namespaces: list.New(), of: map[string]*list.Element{}, at: map[types.NamespacedName]*list.Element{}}
}

func (q *fairQueue) len() int { return len(q.at) }

// add has a Job wait, unless it does.
func (q *fairQueue) add(key types.NamespacedName) {
	if q.at[key] != nil {
		return
	}
	if q.of[key.Namespace] == nil {
		q.of[key.Namespace] = q.namespaces.PushBack(&namespaceNames{key.Namespace, list.New()})
	}
	q.at[key] = q.of[key.Namespace].Value.(*namespaceNames).names.PushBack(key.Name)
}

// remove has a Job wait no more.
func (q *fairQueue) remove(key types.NamespacedName) {
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

// next takes out at most so many Jobs whose turn it is.
func (q *fairQueue) next(most int) (keys []types.NamespacedName) {
	for len(keys) < most && q.len() > 0 {
		in := q.namespaces.Front()
		w := in.Value.(*namespaceNames)
		key := types.NamespacedName{Namespace: w.namespace, Name: w.names.Front().Value.(string)}
		q.namespaces.MoveToBack(in)
		q.remove(key)
		keys = append(keys, key)
	}
	return keys
}
