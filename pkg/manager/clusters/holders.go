package clusters

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/digest"
)

// MirrorHolders gives the workers whose cache holds a Job of this name and origin, sorted by name.
// The slice must not be changed. It is updated before the listeners' MirrorChanged is called.
func (r *Registry) MirrorHolders(key types.NamespacedName) []*Worker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.holders[digest.Of(key)]
}

// recordMirror keeps the index of MirrorHolders, by the events of a worker's cache.
func (r *Registry) recordMirror(worker string, name types.NamespacedName, exists bool) {
	if _, recorded := holder(r.MirrorHolders(name), worker); recorded == exists {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := digest.Of(name)
	holders := r.holders[key]
	i, recorded := holder(holders, worker)
	w, registered := r.workers[worker]
	switch {
	case exists && !recorded && registered && len(holders) == 0:
		r.holders[key] = w.soleHolder
	case exists && !recorded && registered:
		r.holders[key] = slices.Insert(slices.Clone(holders), i, w)
	case !exists && recorded:
		r.removeHolder(key, i)
	}
}

// removeHolder takes one worker off a name's list; the caller holds the lock.
func (r *Registry) removeHolder(key digest.Digest, i int) {
	if holders := r.holders[key]; len(holders) > 1 {
		r.holders[key] = slices.Delete(slices.Clone(holders), i, i+1)
		return
	}
	delete(r.holders, key)
}

// forgetHolder takes a removed worker off all lists; the caller holds the lock.
func (r *Registry) forgetHolder(worker string) {
	for key, holders := range r.holders {
		if i, recorded := holder(holders, worker); recorded {
			r.removeHolder(key, i)
		}
	}
}

// holder finds a worker on a list, or where it belongs.
func holder(holders []*Worker, worker string) (int, bool) {
	return slices.BinarySearchFunc(holders, worker, func(w *Worker, name string) int { return cmp.Compare(w.name, name) })
}
