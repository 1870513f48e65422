package manager

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// memory is what is remembered of single Jobs between reconciles. All of it may
// be lost: it saves writes, and makes none necessary.
type memory struct {
	mu   sync.Mutex
	jobs map[types.UID]*recollection
}

type recollection struct {
	// firstSeen is when the hub Job was first seen by this process.
	firstSeen time.Time
	// statusWritten is when the hub Job's status was last written.
	statusWritten time.Time
	// orphan: the hub Job was seen being deleted with the propagation policy
	// Orphan. The hub's garbage collector takes that mark off the Job, as it
	// finds no Pods there.
	orphan bool
	// unmet are the fields that the worker changed back after they were patched
	// for this generation of the hub Job.
	unmet           []mirror.Note
	unmetGeneration int64
	// asked is the mirror about whose missing Pods its worker was asked, and
	// refusal the answer.
	asked   types.UID
	refusal string
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
func (m *memory) Asked(hub *batchv1.Job, about types.UID, refusal string) {
	m.change(hub.UID, func(r *recollection) { r.asked, r.refusal = about, refusal })
}

// Unmet notes which fields of a patch didn't last.
func (m *memory) Unmet(hub *batchv1.Job, notes []mirror.Note) {
	if len(notes) == 0 && len(m.Of(hub.UID).unmet) == 0 {
		return
	}
	m.change(hub.UID, func(r *recollection) { r.unmet, r.unmetGeneration = notes, hub.Generation })
}

func (m *memory) change(uid types.UID, f func(*recollection)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[uid] == nil {
		m.jobs[uid] = &recollection{}
	}
	f(m.jobs[uid])
}

// age is how long the hub Job has existed. Its creationTimestamp is in whole
// seconds, so a Job that was seen while it was new counts from then.
func (m *memory) age(job *batchv1.Job, now time.Time) time.Duration {
	created, seen := job.CreationTimestamp.Time, m.Of(job.UID).firstSeen
	if seen.Sub(created) < 2*time.Second && seen.After(created) {
		created = seen
	}
	return now.Sub(created)
}

func (r recollection) unmetFor(hub *batchv1.Job) []mirror.Note {
	if r.unmetGeneration != hub.Generation {
		return nil
	}
	return r.unmet
}
