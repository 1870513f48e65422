package job

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// writtenFor is how long a write is remembered if the cache never shows it: the object may have
// been changed back, or deleted, before the watch saw it.
const writtenFor = time.Minute

// written remembers what this process wrote last to the Jobs of one API server, until its cache has
// caught up: so a decision never rests on a state that our own write has replaced.
type written struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]write
}

type write struct {
	job     *batchv1.Job // as the API server returned it; nil for a deletion
	deleted types.UID
	at      time.Time
}

func newWritten() *written { return &written{jobs: map[types.NamespacedName]write{}} }

// Wrote remembers a Job as the API server returned it.
func (w *written) Wrote(job *batchv1.Job, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[keyOf(job)] = write{job: job, at: at}
}

// Deleted remembers that the deletion of a Job was asked for.
func (w *written) Deleted(job *batchv1.Job, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[keyOf(job)] = write{deleted: job.UID, at: at}
}

// Latest returns the newer of what the cache has and what was written; nil: there is no such Job.
// Callers must not modify it.
//
// The cache is read after the memory: what is forgotten in between is in the cache already.
func (w *written) Latest(key types.NamespacedName, cache func() *batchv1.Job, now time.Time) *batchv1.Job {
	last, ok := w.last(key)
	cached := cache()
	if !ok {
		return cached
	}
	job, pending := last.over(cached, now)
	if !pending {
		w.forget(key, last)
		return cached
	}
	return job
}

func (w *written) last(key types.NamespacedName) (write, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.jobs[key]
	return last, ok
}

// forget drops a write, but not one that followed it.
func (w *written) forget(key types.NamespacedName, last write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[key] == last {
		delete(w.jobs, key)
	}
}

// over returns the Job as it is after the write, and whether the cache is still behind it.
func (l write) over(cached *batchv1.Job, now time.Time) (*batchv1.Job, bool) {
	switch {
	case now.Sub(l.at) > writtenFor:
		return nil, false
	case l.job == nil:
		if cached == nil || cached.UID != l.deleted || cached.DeletionTimestamp != nil {
			return nil, false
		}
		leaving := cached.DeepCopy()
		leaving.DeletionTimestamp = &metav1.Time{Time: l.at}
		return leaving, true
	case cached == nil:
		return l.job, true
	default:
		return l.job, newer(l.job, cached)
	}
}

// Echoed says whether a Job from the watch is just what was written last. The cache has caught up
// then: there's nothing to remember any more.
func (w *written) Echoed(job *batchv1.Job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.jobs[keyOf(job)]
	if !ok || last.job == nil || last.job.ResourceVersion != job.ResourceVersion {
		return false
	}
	delete(w.jobs, keyOf(job))
	return true
}

// Forget drops what was written to a Job that the watch reported as deleted. If there is a new one
// of its name already, its creation is found out again.
func (w *written) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, key)
}

// newer compares the resourceVersions of two states of Jobs of one API server. What can't be
// compared isn't newer: the cache is right in the end.
func newer(a, b *batchv1.Job) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order > 0
}

func keyOf(job *batchv1.Job) types.NamespacedName {
	return types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
}
