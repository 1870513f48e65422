package job

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// forgetLastsLocked drops the last states of mirrors that are gone.
func (r *record) forgetLastsLocked() {
	for worker, m := range r.mirrors {
		m.last = nil
		r.store.countLocked(r, worker)
	}
}

// updateMirror changes what is remembered of the mirror in a worker.
func (r *record) updateMirror(worker string, change func(*mirrorMemory)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.updateMirrorLocked(worker, change)
}

func (r *record) updateMirrorLocked(worker string, change func(*mirrorMemory)) {
	r.updateLocked(func(m *memory) {
		if m.mirrors == nil {
			m.mirrors = map[string]*mirrorMemory{}
		}
		if m.mirrors[worker] == nil {
			m.mirrors[worker] = &mirrorMemory{}
		}
		change(m.mirrors[worker])
		if r.store.records[r.key] != r {
			return
		}
		link(r.store.mirrored, worker, r)
		r.store.countLocked(r, worker)
	})
}

// forgetMirrorsLocked drops what is remembered of mirrors that nobody writes to any more, unless
// one is still to be removed.
func (r *record) forgetMirrorsLocked() {
	maps.DeleteFunc(r.mirrors, func(worker string, of *mirrorMemory) bool {
		isOver := of.write == (ownWrite{}) && of.cleanups == (dispatch.Attempts{}) && of.release == (releaseClock{}) &&
			!of.isCleaned && !of.isSought && !of.unreleased && of.rejected == ""
		if isOver {
			r.store.unlinkMirrorLocked(r, worker)
		}
		return isOver
	})
	if len(r.mirrors) == 0 {
		r.mirrors = nil // an empty map isn't small
	}
}

// unlinkMirrorLocked is called before what is remembered of a Job's mirror in a worker goes.
func (s *store) unlinkMirrorLocked(r *record, worker string) {
	unlink(s.mirrored, worker, r)
	unlink(s.kept, worker, r)
	s.countAsLocked(r, worker, 0)
}

// mirroredIn returns the Jobs with a mirror that this process has written to in a worker.
func (s *store) mirroredIn(worker string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return keysOf(s.mirrored[worker])
}

// unreleasedOf returns those of a hub Job's mirrors that workers should have removed, or from which
// they are being taken back: the Job doesn't wait for a worker that it isn't placed on.
func (s *store) unreleasedOf(job *batchv1.Job) (ids []usage.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[keyOf(job)]
	if r == nil || r.id != idOf(job) {
		return nil
	}
	for worker, m := range r.mirrors {
		if (m.unreleased || m.takenBack != "") && m.created != "" {
			ids = append(ids, usage.ID{Worker: worker, UID: m.created})
		}
	}
	return ids
}

// maxOwed bounds, for each worker, the Jobs that are gone and of which it's remembered that the
// worker may have a mirror that its watch doesn't show: 2 KB and a request a minute each, for as
// long as it deletes none of them. A mirror of a Job beyond that is found when it's
// shown, or by its Pods.
const maxOwed = 5000

// updateGone changes what is known of the hub Job of this name that is gone.
func (r *record) updateGone(change func(*dispatch.Gone)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.unlinkOwedLocked()
	r.updateLocked(func(m *memory) {
		change(&m.gone)
		isOver := func(id usage.ID) bool { return len(r.store.owed[id.Worker]) >= maxOwed }
		m.gone.Mirrors = slices.DeleteFunc(m.gone.Mirrors, isOver)
	})
	for _, id := range r.gone.Mirrors {
		if r.store.records[r.key] == r {
			link(r.store.owed, id.Worker, r)
		}
	}
}

// unlinkOwedLocked is called before what may be left of the hub Job that is gone changes.
func (r *record) unlinkOwedLocked() {
	for _, id := range r.gone.Mirrors {
		unlink(r.store.owed, id.Worker, r)
	}
}

// unreleased returns the mirrors that workers should have removed, in order of names.
func (s *store) unreleased() map[string][]types.NamespacedName {
	all := map[string][]types.NamespacedName{}
	s.mu.Lock()
	for worker, records := range s.kept {
		all[worker] = keysOf(records)
	}
	s.mu.Unlock()
	for _, keys := range all { // without the lock: a worker keeps any number
		slices.SortFunc(keys, func(a, b types.NamespacedName) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	return all
}
