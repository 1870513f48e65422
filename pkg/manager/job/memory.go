package job

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// memory is what is remembered of single Jobs between reconciles. It may be lost: then time-outs
// begin anew, and writes that were in vain are tried again. Only of an orphaning deletion that has
// to wait for a worker nothing else tells.
type memory struct {
	mu   sync.Mutex
	jobs map[types.UID]*recollection
}

type recollection struct {
	// firstSeen is when the hub Job was first seen by this process.
	firstSeen time.Time
	// statusWritten is when the hub Job's status was last written.
	statusWritten time.Time
	// orphan: the hub Job was seen being deleted with the propagation policy Orphan. The hub's
	// garbage collector takes that mark off the Job, as it finds no Pods there.
	orphan bool
	// unmet is the last patch of a mirror that its worker didn't take, and when.
	unmet   dispatch.Unmet
	unmetAt time.Time
	// patches of the mirror, and mirrors that were created.
	patches, mirrors tries
	// asked is the mirror about whose missing Pods its worker was asked, askedAt when, and refusal
	// the answer.
	asked   types.UID
	askedAt time.Time
	refusal string
	// waiting is the mirror that waits for its first Pod to run, and since when.
	waiting      types.UID
	waitingSince time.Time
	// rejected are the states of hub Job and mirror whose status the hub rejected.
	rejected string
}

func newMemory() *memory { return &memory{jobs: map[types.UID]*recollection{}} }

// Of returns what is remembered of a Job.
func (m *memory) Of(uid types.UID) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.jobs[uid]; r != nil {
		return *r
	}
	return recollection{}
}

// Forget drops a Job.
func (m *memory) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, uid)
}

// StatusWritten notes the time of a status write.
func (m *memory) StatusWritten(uid types.UID, at time.Time) {
	m.change(uid, func(r *recollection) { r.statusWritten = at })
}

// Watch notes from an event what the next state of the Job may not show.
func (m *memory) Watch(job *batchv1.Job, now time.Time) {
	if m.Of(job.UID).firstSeen.IsZero() {
		m.change(job.UID, func(r *recollection) { r.firstSeen = now })
	}
	if job.DeletionTimestamp != nil && slices.Contains(job.Finalizers, metav1.FinalizerOrphanDependents) {
		m.change(job.UID, func(r *recollection) { r.orphan = true })
	}
}

// Asked notes why a mirror has no Pods.
func (m *memory) Asked(hub *batchv1.Job, about types.UID, refusal string, now time.Time) {
	m.change(hub.UID, func(r *recollection) { r.asked, r.askedAt, r.refusal = about, now, refusal })
}

// Patched notes that the mirror was patched.
func (m *memory) Patched(hub *batchv1.Job, now time.Time) {
	m.change(hub.UID, func(r *recollection) { r.patches = r.patches.next(hub, now) })
}

// Mirrored notes that a mirror was created.
func (m *memory) Mirrored(hub *batchv1.Job, now time.Time) {
	m.change(hub.UID, func(r *recollection) { r.mirrors = r.mirrors.next(hub, now) })
}

// tries are made for one generation of a hub Job.
type tries struct {
	dispatch.Tries
	generation int64
}

// of returns the tries for the hub Job as it is.
func (t tries) of(hub *batchv1.Job, now time.Time) dispatch.Tries {
	if t.generation != hub.Generation || now.Sub(t.Last) > dispatch.CalmAfter {
		return dispatch.Tries{}
	}
	return t.Tries
}

// next counts one more.
func (t tries) next(hub *batchv1.Job, now time.Time) tries {
	return tries{dispatch.Tries{Times: t.of(hub, now).Times + 1, Last: now}, hub.Generation}
}

// Unmet notes what became of a patch.
func (m *memory) Unmet(hub *batchv1.Job, patch mirror.Patch, notes []mirror.Note, now time.Time) {
	if len(notes) == 0 {
		return
	}
	m.change(hub.UID, func(r *recollection) {
		r.unmet, r.unmetAt = dispatch.Unmet{Diff: patch.Diff(), Notes: notes}, now
	})
}

// Waiting notes whether a mirror waits for its first Pod to run, and returns since when it has been
// found to.
func (m *memory) Waiting(hub, mirror types.UID, waits bool, now time.Time) time.Time {
	known := m.Of(hub)
	switch {
	case waits && known.waiting == mirror:
		return known.waitingSince
	case waits:
		m.change(hub, func(r *recollection) { r.waiting, r.waitingSince = mirror, now })
		return now
	case known.waiting != "":
		m.change(hub, func(r *recollection) { r.waiting, r.waitingSince = "", time.Time{} })
	}
	return time.Time{}
}

// Rejected notes that the hub rejected the status that follows from two objects.
func (m *memory) Rejected(hub, mirror *batchv1.Job) {
	m.change(hub.UID, func(r *recollection) { r.rejected = states(hub, mirror) })
}

// states names the states of a hub Job and its mirror that a status follows from.
func states(hub, mirror *batchv1.Job) string {
	return hub.ResourceVersion + "/" + string(mirror.UID) + "/" + mirror.ResourceVersion
}

func (m *memory) change(uid types.UID, f func(*recollection)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[uid] == nil {
		m.jobs[uid] = &recollection{}
	}
	f(m.jobs[uid])
}

// age is how long the hub Job has existed. Its creationTimestamp is in whole seconds, so a Job that
// was seen while it was new counts from then.
func (m *memory) age(job *batchv1.Job, now time.Time) time.Duration {
	created, seen := job.CreationTimestamp.Time, m.Of(job.UID).firstSeen
	if seen.Sub(created) < 2*time.Second && seen.After(created) {
		created = seen
	}
	return now.Sub(created)
}

// unmetSince returns the patch that a worker didn't take after some time.
func (r recollection) unmetSince(after time.Time) dispatch.Unmet {
	if r.unmetAt.Before(after) {
		return dispatch.Unmet{}
	}
	return r.unmet
}
