package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// observe takes over a hub Job from the watch. It reports whether nothing is new about the Job, as
// it's just what this process wrote last, and the workers whose Jobs have changed.
//
// The caller forgets the record of an earlier Job of the name first.
func (s *store) observe(job *batchv1.Job, now time.Time) (echo bool, changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.openLocked(keyOf(job))
	seen := r.id == idOf(job)
	changed = s.indexLocked(r, job)
	r.updateLocked(func(m *memory) {
		if m.firstSeen.IsZero() && !mirror.Finished(job) {
			m.firstSeen = now
		}
		before := m.deletion
		m.deletion, m.run = deletionOf(job, before, seen), runOf(job)
		echo = m.lastWrite.observe(job) && m.deletion == before
	})
	return echo, changed
}

// deletionOf is the propagation policy with which a hub Job is being deleted. A finalizer shows it,
// which the hub's garbage collector removes at once, as it finds no Pods there. So of a Job that
// was being deleted before this process saw it, nobody knows the policy: Foreground does what its
// user expects in any case but Orphan's, if later.
func deletionOf(job *batchv1.Job, before metav1.DeletionPropagation, seen bool) metav1.DeletionPropagation {
	switch {
	case job.DeletionTimestamp == nil:
		return ""
	case slices.Contains(job.Finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	case before != "":
		return before
	case seen:
		return metav1.DeletePropagationBackground
	default:
		return metav1.DeletePropagationForeground
	}
}

// isPlacedLocked reports whether a mirror's hub Job is placed on its worker.
func (r *record) isPlacedLocked(worker string, m *batchv1.Job) bool {
	return r.id == jobID(digest.Of(mirror.HubUID(m))) && slices.Contains(r.indexed.Value().workers(), worker)
}

// deletionOf is the propagation policy with which a hub Job was deleted that is gone. Without a
// finalizer, the first that is seen of a deletion is its end.
func (s *store) deletionOf(job *batchv1.Job) metav1.DeletionPropagation {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[keyOf(job)]
	switch {
	case r != nil && r.id == idOf(job) && r.deletion != "":
		return r.deletion
	case job.DeletionTimestamp == nil:
		return metav1.DeletePropagationBackground
	default:
		return deletionOf(job, "", true)
	}
}

// wrote takes over a hub Job as the hub answered a write, and returns the workers whose Jobs have
// changed. An answer that is the last there is of a Job is not kept: the watch may have reported
// its end before.
func (r *record) wrote(job *batchv1.Job, now time.Time) (changed []string) {
	isLast := job.DeletionTimestamp != nil && len(job.Finalizers) == 0
	var held *batchv1.Job
	if !isLast {
		mirror.Slim(job)
		held = heldOf(job)
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if !isLast {
		changed = r.store.indexLocked(r, job)
	}
	r.updateLocked(func(m *memory) {
		m.answered, m.answer, m.hubRefusals = now, job.ResourceVersion, 0
		if !isLast {
			m.lastWrite, m.run = ownWrite{job: held, at: now}, runOf(job)
		}
	})
	return changed
}

// observeMirror takes over a mirror from the watch of a worker; nil: it is gone. It reports whether
// the mirror is just what this process wrote last.
func (s *store) observeMirror(worker string, key types.NamespacedName, m, last *batchv1.Job, now time.Time) (echo bool) {
	gone := lastStateOf(last) // before the lock is taken
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.openLocked(key)
	asked := false
	if known := r.mirrors[worker]; known != nil {
		asked = last != nil && known.write.deleted == last.UID
		if m == nil {
			known.write = ownWrite{}
		} else {
			known.isMissed, echo = false, known.write.observe(m)
		}
		if s.countLocked(r, worker); echo {
			return true
		}
	}
	hasEnded := r.indexed.Value().hasEnded()
	switch {
	case last == nil || m != nil || asked || !r.isPlacedLocked(worker, last):
	case last.DeletionTimestamp == nil || !hasEnded:
		r.updateMirrorLocked(worker, func(known *mirrorMemory) {
			known.isMissed = last.DeletionTimestamp == nil
			if gone.holdLocked(s, worker, known) {
				known.last.DeletionTimestamp = nil
			}
		})
	}
	if r.unshownSince.IsZero() && !hasEnded {
		r.updateLocked(func(m *memory) { m.unshownSince = now })
	}
	return false
}
