package objects

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind keeps the objects of one kind. Its methods may be called from any goroutine.
type Kind[T metav1.Object] struct {
	changed func(namespace string)
	slim    func(T) T

	lock sync.Mutex
	// objects by namespace and name. Those of cluster scope have no namespace. A namespace's are
	// copied when they change after they were returned: whoever asks mostly does so under a lock.
	objects map[string]map[string]T
	// last is what was returned for a namespace; a change of one of its objects removes it.
	last map[string]*returned[T]
	// known: all objects have been listed, and their changes are watched.
	known bool
}

// returned are the objects of a namespace.
type returned[T any] struct {
	byName map[string]T
	// inOrder of the names; nil: nobody has asked for that.
	inOrder []T
}

func newKind[T metav1.Object](changed func(namespace string), slim func(T) T) *Kind[T] {
	return &Kind[T]{changed: changed, slim: slim, objects: map[string]map[string]T{}, last: map[string]*returned[T]{}}
}

// Key is the name by which an object is kept.
func (k *Kind[T]) Key(object T) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Slim is what is read of an object, and no more.
func (k *Kind[T]) Slim(object T) T { return k.slim(object) }

// Set adds or updates an object. It is kept as it is: nobody may change it any more.
func (k *Kind[T]) Set(object T) {
	k.change(object.GetNamespace(), func(there map[string]T) { there[object.GetName()] = object })
}

// Remove removes an object.
func (k *Kind[T]) Remove(key types.NamespacedName) {
	k.change(key.Namespace, func(there map[string]T) { delete(there, key.Name) })
}

func (k *Kind[T]) change(namespace string, change func(map[string]T)) {
	k.lock.Lock()
	there := k.objects[namespace]
	if k.last[namespace] != nil {
		there = maps.Clone(there)
	} else if there == nil {
		there = map[string]T{}
	}
	k.objects[namespace] = there
	change(there)
	if len(there) == 0 {
		delete(k.objects, namespace)
	}
	delete(k.last, namespace)
	k.lock.Unlock()
	k.changed(namespace)
}

// Keys are those of all objects.
func (k *Kind[T]) Keys() []types.NamespacedName {
	k.lock.Lock()
	defer k.lock.Unlock()
	var keys []types.NamespacedName
	for namespace, there := range k.objects {
		for name := range there {
			keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return keys
}

// Know says whether the objects are known: all have been listed, and their changes are watched.
func (k *Kind[T]) Know(known bool) {
	k.lock.Lock()
	changes := k.known != known
	k.known = known
	k.lock.Unlock()
	if changes {
		k.changed("")
	}
}

// Forget removes all objects, before they're listed again.
func (k *Kind[T]) Forget() {
	k.lock.Lock()
	clear(k.objects)
	clear(k.last)
	k.known = false
	k.lock.Unlock()
	k.changed("")
}

// In returns the objects of a namespace by name; nil if they aren't known. The map must not be
// changed.
func (k *Kind[T]) In(namespace string) map[string]T {
	k.lock.Lock()
	defer k.lock.Unlock()
	if !k.known {
		return nil
	}
	return k.returned(namespace).byName
}

func (k *Kind[T]) returned(namespace string) *returned[T] {
	r := k.last[namespace]
	if r == nil {
		there := k.objects[namespace]
		if there == nil {
			return &returned[T]{byName: map[string]T{}}
		}
		r = &returned[T]{byName: there}
		k.last[namespace] = r
	}
	return r
}

// all returns what In returns, by namespace. The objects are known.
func (k *Kind[T]) all() map[string]map[string]T {
	k.lock.Lock()
	namespaces := slices.Collect(maps.Keys(k.objects))
	k.lock.Unlock()
	all := make(map[string]map[string]T, len(namespaces))
	for _, namespace := range namespaces {
		all[namespace] = k.In(namespace)
	}
	return all
}

func (k *Kind[T]) isEmpty() bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	return len(k.objects) == 0
}

func (k *Kind[T]) isKnown() bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.known
}

// list returns all objects, in the order of their namespaces and names.
func (k *Kind[T]) list() []T {
	k.lock.Lock()
	defer k.lock.Unlock()
	var list []T
	for _, namespace := range slices.Sorted(maps.Keys(k.objects)) {
		there := k.objects[namespace]
		for _, name := range slices.Sorted(maps.Keys(there)) {
			list = append(list, there[name])
		}
	}
	return list
}

// listIn returns the objects of a namespace in the order of their names; nil if they aren't known.
// The list must not be changed.
func (k *Kind[T]) listIn(namespace string) []T {
	k.lock.Lock()
	defer k.lock.Unlock()
	if !k.known {
		return nil
	}
	r := k.returned(namespace)
	if r.inOrder == nil {
		for _, name := range slices.Sorted(maps.Keys(r.byName)) {
			r.inOrder = append(r.inOrder, r.byName[name])
		}
	}
	return r.inOrder
}
