package job

import (
	"maps"
	"reflect"
	"time"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// record is all that the manager remembers of one hub Job between two reconciles, and of its
// mirrors. The lock of its store guards it: see update and read. It may be lost, as it is when the
// manager restarts: then timeouts begin again, and writes that were refused are tried again. Only
// the propagation policy of a deletion that has to wait for a worker shows in no object.
type record struct {
	store *store
	key   types.NamespacedName
	// id and indexed are the hub Job as the store's indexes have it; unseen: none was seen.
	id      jobID
	indexed unique.Handle[placed]
	// member is what is known of the Job as one of its group; nil: it's in none.
	member *membership
	*memory
}

// jobID tells a hub Job from others of its name: the digest of its UID.
type jobID digest.Digest

const unseen jobID = 0

func idOf(job *batchv1.Job) jobID { return jobID(digest.Of(job.UID)) }

// nothing is the memory of a record without any, as that of most finished Jobs. It isn't written
// to.
var nothing = &memory{}

// memory is the part of a record that a reconcile reads and writes.
type memory struct {
	run run
	// firstSeen is when this process first saw the hub Job unfinished.
	firstSeen time.Time
	// lastWrite is the last write to the hub Job, answered when the hub last answered one, and answer
	// the resourceVersion of that.
	lastWrite ownWrite
	answered  time.Time
	answer    string
	// spec is what was last read of the hub Job's spec as its API server sent it.
	spec seenSpec
	// statusWritten is when the hub Job's status was last written.
	statusWritten time.Time
	// unshownSince is when the first change of a mirror arrived that the hub Job doesn't show; zero:
	// it shows all.
	unshownSince time.Time
	// lookDue is when the Job is looked at again as its status waits to be written; zero: it doesn't,
	// or a look is under way. Progress waits for that look.
	lookDue time.Time
	// deletion is the propagation policy with which the hub Job is being deleted; empty: it wasn't
	// seen being deleted.
	deletion metav1.DeletionPropagation
	// gone is the hub Job of this name whose end the watch has shown.
	gone dispatch.Gone
	// hubRefusals counts the writes to the hub Job that the hub refused in a row.
	hubRefusals int
	// retryHub is when to look at the Job again of which the hub's admission stripped a write.
	retryHub time.Time
	// passedOver has the reason for which a worker can't take the Job for a while.
	passedOver map[string]obstacle
	// reservedIn are the workers that have capacity reserved for the Job.
	reservedIn []string
	// rejected are the states of a divided Job and its mirrors whose status the hub rejected.
	rejected string
	// obstacles are why the last attempt to place the Job failed; they hold while it waits.
	obstacles []obstacleKind
	// placement is the result that Kueue reads; nil: nothing yet.
	placement *kueue.PlacementResult
	// waitDue is when to show why the Job waits; zero: it's shown, or the Job doesn't wait.
	waitDue time.Time
	// returning is about a worker that the Job prefers to its own.
	returning returning
	// reported is what was reported about the Job.
	reported reported
	// usedBefore is the time of the Pods that were gone before this process saw their mirror.
	usedBefore []usedBefore
	// repeated is the last mirror that was deleted: what it completed and is made again is counted.
	repeated types.UID
	// mirrors is what is remembered of the Job's mirrors, by worker.
	mirrors map[string]*mirrorMemory
}

// seenSpec are the recent fields of one generation of a hub Job's spec; zero: none was read.
type seenSpec struct {
	generation int64
	recent     recentfields.Fingerprints
}

// of reports whether this is what the hub Job has.
func (s seenSpec) of(job *batchv1.Job) bool { return s.generation == job.Generation }

// obstacle is why a worker can't take a Job until some time, or until its blocker is gone.
type obstacle struct {
	reason  string
	until   time.Time
	blocker blockedAt
}

// mirrorMemory is what is remembered of a Job's mirror in one worker.
type mirrorMemory struct {
	// last is the last state of a mirror that had ended when it was deleted, that is missed, or that
	// was taken back; nil: none. lastBytes is what it takes in memory.
	last      *batchv1.Job
	lastBytes int64
	// isReplaced: this process has deleted the last mirror.
	isReplaced bool
	// isMissed: the watch shows the mirror no more, and nobody has deleted it. It may have lost its
	// marks.
	isMissed bool
	// isSought: see dispatch.Worker.
	isSought bool
	// neverHad: the worker has refused the Job, and had no mirror of it before. unanswered: a create
	// got no answer, so that there may be one.
	neverHad, unanswered bool
	// isConfirmed: this process has asked the worker itself for a mirror that its watch doesn't show.
	isConfirmed bool
	// write is the last write to the mirror.
	write ownWrite
	// created is the UID of the last mirror that this process created, or took back, and takenBack why
	// it is deleted again; empty: it isn't.
	created   types.UID
	takenBack string
	// unmet is the last patch, if the worker didn't take it.
	unmet dispatch.Unmet
	// agreed is the digest of what mirror and hub Job agreed in at the last look.
	agreed digest.Digest
	// patches and creations count the writes for what the mirror is to be.
	patches, creations attempts
	// asked is the mirror or Pod that the worker's events were read for, askedAt when, and answer what
	// they say of it.
	asked   types.UID
	askedAt time.Time
	answer  string
	// waiting is the mirror that waits for its first Pod to run, and since when.
	waiting      types.UID
	waitingSince time.Time
	// halted is how a mirror is halted; zero: none is.
	halted halted
	// cleanups counts the attempts to remove a mirror that the Job has no use for; isCleaned: one
	// is under way.
	cleanups  dispatch.Attempts
	isCleaned bool
	// release is how long the worker has had for removing a mirror; unreleased: it takes too long.
	// refusal is why it last refused to.
	release    releaseClock
	unreleased bool
	refusal    string
	// rejected are the states of hub Job and mirror whose status the hub rejected.
	rejected string
	// counted is what of this is counted in the store's heldBytes.
	counted int64
}

// isTakingBack reports whether a mirror is being taken back.
func (m *mirrorMemory) isTakingBack(uid types.UID) bool { return m.takenBack != "" && m.created == uid }

// states names the states of a hub Job and its mirrors that a status follows from.
func states(hub *batchv1.Job, mirrors ...*batchv1.Job) string {
	named := hub.ResourceVersion
	for _, m := range mirrors {
		named += "/" + string(m.UID) + "/" + m.ResourceVersion
	}
	return named
}

// update changes the memory under the store's lock.
func (r *record) update(change func(*memory)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.updateLocked(change)
}

func (r *record) updateLocked(change func(*memory)) {
	if r.memory == nothing {
		r.memory = &memory{}
	}
	change(r.memory)
	if r.indexed.Value().hasEnded() && reflect.ValueOf(r.memory).Elem().IsZero() {
		r.memory = nothing
	}
}

// sawWhole takes over the recent fields of a hub Job.
func (r *record) sawWhole(whole *mirror.Whole) {
	r.update(func(m *memory) { m.spec = seenSpec{whole.Job.Generation, whole.Recent} })
}

// known is a copy of a memory, with what its maps hold now.
type known struct {
	memory
	mirrors    map[string]mirrorMemory
	passedOver map[string]string
	// seen are the Job's mirrors as they were first read, by worker.
	seen map[string]*batchv1.Job
	// holders are the workers that had a mirror by the events of their watches, before all else was
	// read.
	holders []string
	// isShown: the cache shows what was last written to the hub Job.
	isShown bool
}

// awaitsMirror reports whether a worker's cache doesn't show a mirror yet as this process wrote it.
func (k *known) awaitsMirror(now time.Time) bool {
	for _, m := range k.mirrors {
		if m.write.job != nil && now.Sub(m.write.at) <= ownWriteExpires {
			return true
		}
	}
	return false
}

// forgetLife drops what only matters while a hub Job or its Pods may change: nothing more is
// awaited of them. What the hub shows later is compared with its account anew, as after a restart.
func (m *memory) forgetLife() {
	m.firstSeen, m.answered, m.statusWritten, m.unshownSince = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	m.answer, m.spec, m.returning = "", seenSpec{}, returning{}
	m.passedOver, m.obstacles, m.usedBefore, m.rejected = nil, nil, nil, ""
}

// beginLook returns a copy of the memory, before anything else is read: later changes have the Job
// looked at again.
func (r *record) beginLook(now time.Time) known {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if !r.lookDue.IsZero() { // else it may be that of nothing, which isn't written to
		r.lookDue = time.Time{}
	}
	if len(r.passedOver) > 0 { // likewise
		maps.DeleteFunc(r.passedOver, func(_ string, o obstacle) bool { return now.After(o.until) })
		if len(r.passedOver) == 0 {
			r.passedOver = nil
		}
	}
	for worker := range r.mirrors {
		r.store.expireLocked(r, worker, now)
	}
	return r.readLocked(now)
}

// read returns a copy of the memory.
func (r *record) read(now time.Time) known {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.readLocked(now)
}

func (r *record) readLocked(now time.Time) known {
	plain := *r.memory
	plain.mirrors, plain.passedOver, plain.reported, plain.usedBefore = nil, nil, reported{}, nil
	k := known{memory: plain}
	for worker, m := range r.mirrors {
		if k.mirrors == nil {
			k.mirrors = make(map[string]mirrorMemory, len(r.mirrors))
		}
		k.mirrors[worker] = *m
	}
	for worker, o := range r.passedOver {
		if now.After(o.until) {
			continue
		}
		if k.passedOver == nil {
			k.passedOver = map[string]string{}
		}
		k.passedOver[worker] = o.reason
	}
	return k
}

// maxObstacle is how long the reason of an obstacle is at most, in bytes: a worker may say
// something else of each Job. The event has more of it.
const maxObstacle = 256

// passOver remembers why a worker can't take the Job for now.
func (r *record) passOver(worker string, o obstacle) {
	o.reason = unique.Make(text.Clean(o.reason, maxObstacle)).Value() // many Jobs and workers have the same
	r.update(func(m *memory) {
		if m.passedOver == nil {
			m.passedOver = map[string]obstacle{}
		}
		m.passedOver[worker] = o
	})
}

// await has the Job reconciled, or not, when a worker has more free capacity. Call it before the
// capacity is read: then no capacity that is freed in between is missed.
func (r *record) await(waits bool) {
	r.enlist(r.store.waiting, waits)
}

// enlist puts the Job into a set of its store, or takes it out.
func (r *record) enlist(set map[types.NamespacedName]struct{}, is bool) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	switch {
	case !is:
		delete(set, r.key)
	case r.store.records[r.key] == r:
		set[r.key] = struct{}{}
	}
}

// age is how long the hub Job has existed. Its creationTimestamp is in whole seconds, so a Job that
// was seen while it was new counts from then.
func (m *memory) age(job *batchv1.Job, now time.Time) time.Duration {
	created := job.CreationTimestamp.Time
	if m.firstSeen.Sub(created) < 2*time.Second && m.firstSeen.After(created) {
		created = m.firstSeen
	}
	return now.Sub(created)
}

// indexedID is the hub Job that the record is about.
func (r *record) indexedID() jobID {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.id
}

// placedOn are the workers that the hub Job is placed on.
func (r *record) placedOn() []string {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.indexed.Value().workers()
}

// reservingWorkers are those that have capacity reserved for the Job.
func (r *record) reservingWorkers() []string {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.reservedIn
}
