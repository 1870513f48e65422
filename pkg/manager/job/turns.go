package job

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
)

// turns are Jobs that wait for something, each once. Namespaces take turns, so that one that has
// many Jobs delays those of the others by one Job at a time. A namespace's Jobs are in the order of
// their coming.
type turns struct {
	namespaces *list.List // of *waitingIn; the next one first
	of         map[string]*list.Element
	at         map[types.NamespacedName]*list.Element
}

// waitingIn are the names of a namespace's Jobs.
type waitingIn struct {
	namespace string
	names     *list.List
}

func newTurns() *turns {
	return &turns{namespaces: list.New(), of: map[string]*list.Element{}, at: map[types.NamespacedName]*list.Element{}}
}

func (t *turns) len() int { return len(t.at) }

// add has a Job wait, unless it does.
func (t *turns) add(key types.NamespacedName) {
	if t.at[key] != nil {
		return
	}
	if t.of[key.Namespace] == nil {
		t.of[key.Namespace] = t.namespaces.PushBack(&waitingIn{key.Namespace, list.New()})
	}
	t.at[key] = t.of[key.Namespace].Value.(*waitingIn).names.PushBack(key.Name)
}

// remove has a Job wait no more.
func (t *turns) remove(key types.NamespacedName) {
	e := t.at[key]
	if e == nil {
		return
	}
	delete(t.at, key)
	in := t.of[key.Namespace]
	if names := in.Value.(*waitingIn).names; names.Len() > 1 {
		names.Remove(e)
		return
	}
	t.namespaces.Remove(in)
	delete(t.of, key.Namespace)
}

// next takes out at most so many Jobs whose turn it is.
func (t *turns) next(most int) (keys []types.NamespacedName) {
	for len(keys) < most && t.len() > 0 {
		in := t.namespaces.Front()
		w := in.Value.(*waitingIn)
		key := types.NamespacedName{Namespace: w.namespace, Name: w.names.Front().Value.(string)}
		t.namespaces.MoveToBack(in)
		t.remove(key)
		keys = append(keys, key)
	}
	return keys
}
