package capacity

import (
	"runtime"
	"sync"
	"weak"
)

// shapes has the Shapes that somebody uses. Most Pods have the Shape of others.
var shapes sync.Map // of weak.Pointer[Shape], by identity

// identity is equal for Shapes that are equal in all.
type identity struct {
	key         string
	work, bytes int
}

// shared is the Shape that others use which is the same, or this one.
func shared(s *Shape) *Shape {
	id := identity{s.key, s.work, s.bytes}
	for {
		if known, is := shapes.Load(id); is {
			if other := known.(weak.Pointer[Shape]).Value(); other != nil { //nolint:forcetypeassert // nothing else is stored
				return other
			}
			shapes.CompareAndDelete(id, known) // nobody uses it any more
		}
		own := weak.Make(s)
		if _, isLate := shapes.LoadOrStore(id, own); !isLate {
			runtime.AddCleanup(s, func(id identity) { shapes.CompareAndDelete(id, own) }, id)
			return s
		}
	}
}
