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
// shows them, and the last states of mirrors that are gone. All of a worker together takes maxHeld
// at most, in bytes as they are decoded. The sum up to which something is still added differs: what
// is smaller, or matters more, finds room for longer.
const (
	maxHeld          = 32 << 20 // for answers without what is large in them
	maxWithOutline   = 24 << 20 // for last states without it
	maxWithAnswer    = 16 << 20 // for whole answers
	maxWithLastState = 8 << 20  // for whole last states
	// smallHeld is the largest answer or last state from which what is large has been left out. A Job
	// without any text has half of it.
	smallHeld = 16 << 10
	// maxLast is the largest last state that is remembered whole.
	maxLast = 64 << 10
)

// countLocked brings up to date what counts of a Job's mirror in a worker.
func (s *store) countLocked(r *record, worker string) {
	m := r.mirrors[worker]
	if m == nil || s.records[r.key] != r {
		return
	}
	if m.last == nil {
		m.lastBytes = 0
	}
	s.countAsLocked(r, worker, m.write.bytes+m.lastBytes)
}

func (s *store) countAsLocked(r *record, worker string, bytes int64) {
	m := r.mirrors[worker]
	if m == nil {
		return
	}
	if s.heldBytes[worker] += bytes - m.counted; s.heldBytes[worker] == 0 {
		delete(s.heldBytes, worker)
	}
	if m.counted = bytes; bytes > 0 && m.write.bytes > 0 {
		link(s.answered, worker, r)
	} else {
		unlink(s.answered, worker, r)
	}
}

// holdAnswer remembers a worker's answer, if need be without what is large in it; false: there's no
// room for it.
func (r *record) holdAnswer(worker string, answer *batchv1.Job, bytes int64, now time.Time) bool {
	if r.holdWithin(maxWithAnswer, worker, ownWrite{job: answer, at: now, bytes: bytes}) {
		return true
	}
	light := *answer
	mirror.LightenMirror(&light)
	bytes = decoded.Size(&light)
	return bytes <= smallHeld && r.holdWithin(maxHeld, worker, ownWrite{job: &light, at: now, bytes: bytes})
}

// holdWithin remembers an answer if the sum stays within a limit.
func (r *record) holdWithin(limit int64, worker string, write ownWrite) (held bool) {
	r.updateMirror(worker, func(m *mirrorMemory) {
		if held = r.store.hasRoomLocked(worker, write.bytes-m.write.bytes, limit, write.at); held {
			m.write = write
		}
	})
	return held
}

// hasRoomLocked reports whether the sum stays within a limit with more bytes, if need be without
// answers that have expired.
func (s *store) hasRoomLocked(worker string, more, limit int64, now time.Time) bool {
	fits := func() bool { return s.heldBytes[worker]+more <= limit }
	if fits() {
		return true
	}
	if now.Sub(s.expiredAt[worker]) < time.Second { // very many may be asked for
		return false
	}
	s.expiredAt[worker] = now
	for r := range s.answered[worker] {
		s.expireLocked(r, worker, now)
	}
	return fits()
}

// expireLocked drops an answer that the worker's cache never showed.
func (s *store) expireLocked(r *record, worker string, now time.Time) {
	if m := r.mirrors[worker]; m.write.hasExpired(now) {
		m.write = ownWrite{}
		s.countLocked(r, worker)
	}
}

// lastState is the last state of a mirror that is gone: the whole, nil if that is too large, and an
// outline, nil if that is large, too.
type lastState struct {
	whole, outline           *batchv1.Job
	wholeBytes, outlineBytes int64
}

// lastStateOf takes a while for a large mirror.
func lastStateOf(m *batchv1.Job) (l lastState) {
	if m == nil {
		return l
	}
	if l.wholeBytes = decoded.Size(m); l.wholeBytes <= maxLast {
		l.whole = m
	}
	outline := outlineOf(m)
	if l.outlineBytes = decoded.Size(outline); l.outlineBytes <= smallHeld {
		l.outline = outline
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
	others := s.heldBytes[worker] - m.lastBytes
	switch {
	case l.whole != nil && others+l.wholeBytes <= maxWithLastState:
		m.last, m.lastBytes = l.whole.DeepCopy(), l.wholeBytes
	case l.outline != nil && others+l.outlineBytes <= maxWithOutline:
		m.last, m.lastBytes = l.outline.DeepCopy(), l.outlineBytes
	default:
		return false
	}
	return true
}
