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
	id, own := identity{s.key, s.work, s.bytes}, weak.Make(s)
	for {
		known, isKnown := shapes.LoadOrStore(id, own)
		if !isKnown {
			runtime.AddCleanup(s, func(id identity) { shapes.CompareAndDelete(id, own) }, id)
			return s
		}
		if other := known.(weak.Pointer[Shape]).Value(); other != nil { //nolint:forcetypeassert // nothing else is stored
			return other
		}
		shapes.CompareAndDelete(id, known) // nobody uses it any more
	}
}
