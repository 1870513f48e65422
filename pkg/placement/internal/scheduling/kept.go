package scheduling

import "sync"

// kept is what was found out by key, for the next who asks. Users and workers choose the keys: when
// there are too many, all are found out anew.
type kept[K comparable, V any] struct {
	lock  sync.Mutex
	known map[K]V
}

const maxKept = 64 // more than one Job has

// get finds it out if it isn't known. Several may do so at the same time.
func (k *kept[K, V]) get(key K, find func() V) V {
	k.lock.Lock()
	found, is := k.known[key]
	k.lock.Unlock()
	if is {
		return found
	}
	found = find()
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.known == nil || len(k.known) >= maxKept {
		k.known = map[K]V{}
	}
	k.known[key] = found
	return found
}
