package clusters

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// feed passes a worker's objects on to those who keep what they need of them. Unlike a cache, it
// holds none itself.
type feed[T any] struct {
	keepers []keeper[T]
	// changed is called after every event.
	changed func()
}

// keeper of what it needs of objects. Its methods are called one after the other.
type keeper[T any] interface {
	// Set adds or updates an object.
	Set(T)
	// Delete removes one.
	Delete(T)
	// Replace adds or updates all objects that there are, and removes the others.
	Replace([]T)
}

func (f feed[T]) sink(from cache.ListerWatcher, example runtime.Object, onEnd cache.WatchErrorHandlerWithContext) (runner, synced) {
	c := cache.New(&cache.Config{
		// Atomic: a list is one event, for which the queue needn't know what there was before.
		Queue:                        cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: true}),
		ListerWatcher:                from,
		ObjectType:                   example,
		Process:                      f.process,
		WatchErrorHandlerWithContext: onEnd,
	})
	return c, c
}

func (f feed[T]) process(popped any, _ bool) error {
	deltas, _ := popped.(cache.Deltas)
	for i := range deltas {
		for _, k := range f.keepers {
			pass(k, &deltas[i])
		}
	}
	f.changed()
	return nil
}

func pass[T any](to keeper[T], delta *cache.Delta) {
	switch object := delta.Object.(type) {
	case cache.ReplacedAllInfo:
		all := make([]T, 0, len(object.Objects))
		for _, o := range object.Objects {
			if typed, is := o.(T); is {
				all = append(all, typed)
			}
		}
		to.Replace(all)
	case T:
		if delta.Type == cache.Deleted {
			to.Delete(object)
		} else {
			to.Set(object)
		}
	}
}
