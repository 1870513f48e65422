package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// Limits of what is remembered of a worker's mirrors beside its cache: its answers, until the cache
// shows them, and the last states of mirrors that are gone. In bytes as they are decoded, those of
// more than smallHeld take maxHeld at most, by worker, of which last states leave half to answers.
// A Job without any text has half of smallHeld.
const (
	smallHeld = 16 << 10
	maxHeld   = 16 << 20
	// maxLast is the largest last state that is remembered whole.
	maxLast = 64 << 10
)

// large is what of some bytes counts.
func large(bytes int64) int64 {
	if bytes <= smallHeld {
		return 0
	}
	return bytes
}

// countLocked brings up to date what counts of a Job's mirror in a worker.
func (s *store) countLocked(r *record, worker string) {
	m := r.mirrors[worker]
	if m == nil || s.records[r.key] != r {
		return
	}
	bytes := m.write.large
	if m.last != nil {
		bytes += m.lastLarge
	}
	s.countAsLocked(r, worker, bytes)
}

func (s *store) countAsLocked(r *record, worker string, bytes int64) {
	m := r.mirrors[worker]
	if m == nil || m.counted == bytes {
		return
	}
	if s.largeBytes[worker] += bytes - m.counted; s.largeBytes[worker] == 0 {
		delete(s.largeBytes, worker)
	}
	if m.counted = bytes; bytes > 0 {
		link(s.large, worker, r)
	} else {
		unlink(s.large, worker, r)
	}
}

// holdAnswer remembers a worker's answer; false: there's no room for it.
func (r *record) holdAnswer(worker string, write ownWrite) (held bool) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if !r.store.hasRoomLocked(worker, write) {
		return false
	}
	r.updateMirrorLocked(worker, func(m *mirrorMemory) { m.write = write })
	return true
}

// hasRoomLocked reports whether there's room for an answer, if need be without those that have
// expired.
func (s *store) hasRoomLocked(worker string, write ownWrite) bool {
	if write.large == 0 || s.largeBytes[worker]+write.large <= maxHeld {
		return true
	}
	for r := range s.large[worker] {
		s.expireLocked(r, worker, write.at)
	}
	return s.largeBytes[worker]+write.large <= maxHeld
}

// expireLocked drops an answer that the worker's cache never showed.
func (s *store) expireLocked(r *record, worker string, now time.Time) {
	if m := r.mirrors[worker]; m.write.hasExpired(now) {
		m.write = ownWrite{}
		s.countLocked(r, worker)
	}
}

// lastState is the last state of a mirror that is gone: the whole, nil if that is too large, and of
// a large one an outline, nil if that is large, too.
type lastState struct {
	whole, outline *batchv1.Job
	large          int64
}

// lastStateOf takes a while for a large mirror.
func lastStateOf(m *batchv1.Job) lastState {
	if m == nil {
		return lastState{}
	}
	l := lastState{whole: m, large: large(decoded.Size(m))}
	if l.large == 0 {
		return l
	}
	if l.outline = outlineOf(m); decoded.Size(l.outline) > smallHeld {
		l.outline = nil
	}
	if l.large > maxLast {
		l.whole = nil
	}
	return l
}

// outlineOf has of a mirror what the hub reads of one that is gone: what it wrote itself, and the
// status.
func outlineOf(m *batchv1.Job) *batchv1.Job {
	outline := *m
	mirror.LightenMirror(&outline)
	outline.Labels = map[string]string{v1alpha1.LabelOrigin: m.Labels[v1alpha1.LabelOrigin]}
	outline.Annotations = map[string]string{}
	for _, key := range slices.Concat(ofHub, []string{v1alpha1.AnnotationHubUID, v1alpha1.AnnotationIndexesObserved}) {
		if value, has := m.Annotations[key]; has {
			outline.Annotations[key] = value
		}
	}
	return &outline
}

// holdLocked remembers as much of a last state as there's room for; false: nothing.
func (l lastState) holdLocked(s *store, worker string, m *mirrorMemory) (held bool) {
	switch {
	case l.whole != nil && (l.large == 0 || s.largeBytes[worker]+l.large <= maxHeld/2):
		m.last, m.lastLarge = l.whole.DeepCopy(), l.large
	case l.outline != nil:
		m.last, m.lastLarge = l.outline.DeepCopy(), 0
	default:
		return false
	}
	return true
}
