package feed

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// fanOut passes a worker's objects on to those who keep what they need of them. Unlike a cache, it
// holds none itself. What feeds it waits until they have taken an event: the informers of client-go
// hold any number of events for a handler that is slower.
type fanOut[K comparable, T any] struct {
	// key is by what stores know an object.
	key    func(T) K
	stores []store[K, T]
	// changed is called after every event, and when the API server says that there was none.
	changed func()
}

// store has what somebody needs of objects. Its methods are called one after the other.
type store[K comparable, T any] interface {
	// Set adds or updates an object.
	Set(T)
	// Remove removes one, which needn't be there. Of a deleter, it's one that was missing when all
	// were listed.
	Remove(K)
	// Keys are those of the objects of which it keeps something.
	Keys() []K
}

// deleter is a store that makes a difference between what the watch says is deleted, and what is
// found missing.
type deleter[T any] interface {
	// Delete removes an object, which needn't be there, as it was last.
	Delete(T)
}

func (f fanOut[K, T]) sink(from cache.ListerWatcher, intake *intake, onEnd cache.WatchErrorHandlerWithContext) (runner, synced) {
	c := cache.New(&cache.Config{
		// Atomic: a list is one event, for which the queue needn't know what there was before.
		Queue: cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
		}),
		ListerWatcher:     from,
		ObjectDescription: fmt.Sprintf("%T", intake.example), // the intake has looked at the types
		Process: func(popped any, _ bool) error {
			deltas, _ := popped.(cache.Deltas)
			f.process(deltas, intake.taken)
			return nil
		},
		WatchErrorHandlerWithContext: onEnd,
	})
	return c, c
}

func (f fanOut[K, T]) process(deltas cache.Deltas, taken func(any)) {
	for i := range deltas {
		taken(deltas[i].Object) // before a store may change it
		f.pass(&deltas[i])
	}
	f.changed()
}

func (f fanOut[K, T]) pass(delta *cache.Delta) {
	switch object := delta.Object.(type) {
	case cache.ReplacedAllInfo:
		f.replace(object.Objects)
	case T:
		for _, k := range f.stores {
			d, reads := k.(deleter[T])
			switch {
			case delta.Type != cache.Deleted:
				k.Set(object)
			case reads:
				d.Delete(object)
			default:
				k.Remove(f.key(object))
			}
		}
	}
}

// replace sets all objects that there are, and removes those that stores had besides: no event told
// of their end.
func (f fanOut[K, T]) replace(objects []any) {
	all, there := make([]T, 0, len(objects)), make(map[K]bool, len(objects))
	for _, o := range objects {
		if typed, is := o.(T); is {
			all = append(all, typed)
			there[f.key(typed)] = true
		}
	}
	for _, s := range f.stores {
		for _, key := range s.Keys() {
			if !there[key] {
				s.Remove(key)
			}
		}
		for _, o := range all {
			s.Set(o)
		}
	}
}
