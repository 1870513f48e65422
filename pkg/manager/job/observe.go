package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// observe takes over a hub Job from the watch. It reports whether nothing is new about the Job, as it's
// just what this process wrote last, and the workers whose Jobs have changed.
//
// The caller forgets the record of an earlier Job of the name first.
func (s *store) observe(job *batchv1.Job, now time.Time) (echo bool, changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.openLocked(keyOf(job))
	if r.firstSeen.IsZero() {
		r.firstSeen = now
	}
	before := r.deletion
	r.deletion = deletionOf(job, before, r.uid == job.UID)
	echo = r.hub.observe(job) && r.deletion == before
	return echo, s.indexLocked(r, job)
}

// deletionOf is the propagation policy with which a hub Job is being deleted. A finalizer shows it, which
// the hub's garbage collector removes at once, as it finds no Pods there. So of a Job that was being
// deleted before this process saw it, nobody knows the policy: Foreground does what its user expects
// in any case but Orphan's, if later.
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

// wrote takes over a hub Job as the hub answered a write, and returns the workers whose Jobs have
// changed. An answer that is the last there is of a Job is not kept: the watch may have reported
// its end before.
func (r *record) wrote(job *batchv1.Job, now time.Time) (changed []string) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.answered, r.hubRefusals = now, 0
	if job.DeletionTimestamp != nil && len(job.Finalizers) == 0 {
		return nil
	}
	mirror.Slim(job)
	r.hub = ownWrite{job: job, at: now}
	return r.store.indexLocked(r, job)
}

// observeMirror takes over a mirror from the watch of a worker; nil: it is gone. It reports whether
// the mirror is just what this process wrote last.
func (s *store) observeMirror(worker string, key types.NamespacedName, m *batchv1.Job, now time.Time) (echo bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.openLocked(key)
	if known := r.mirrors[worker]; known != nil {
		if m == nil {
			known.write = ownWrite{}
		} else if known.write.observe(m) {
			return true
		}
	}
	if r.mirrorChanged.IsZero() {
		r.mirrorChanged = now
	}
	return false
}
