package dispatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// cleanUp adds what is done about the mirrors that the Job has no use for: orphaned and stale ones.
// Nothing waits for it. Each is input from its worker, which may have made it up, or may keep it.
func (p *Plan) cleanUp(s *Snapshot) {
	for _, w := range s.Workers() {
		p.letGo(s, w, w.Orphan)
		p.letGo(s, w, w.Mirror)
		if w.Sought && w.Synced {
			p.attempt(s, w, SeekUnmarked{At{Name: w.Name}})
		}
		if w.Orphan != nil {
			p.addCleanup(s, w, s.orphaned(w))
			p.Reports = append(p.Reports, w.copied()...)
		}
		switch {
		case w.Mirror == nil || s.needs(w):
		case w.Removal == v1alpha1.RemovalOrphan:
			p.addCleanup(s, w, DisownMirror{At{w.Name, w.Mirror}})
		default:
			p.addCleanup(s, w, stale(w, mirror.Moved(s.Job)))
			if isOnce := s.Assigned != nil && !mirror.Moved(s.Job); w.Mirror.DeletionTimestamp == nil && s.isPlaced() && (isOnce || s.isCopy(w)) {
				p.Reports = append(p.Reports, warn(v1alpha1.EventMirrorStopped, "Worker "+w.Name+" has a mirror of the Job, which isn't placed there, "+
					"such as one that somebody restored from a backup: "+stops(w.Mirror)))
			}
		}
	}
}

// letGo releases a mirror that was kept until the hub knows its end: when it does, or when the
// mirror is deleted otherwise.
func (p *Plan) letGo(s *Snapshot, w *Worker, m *batchv1.Job) {
	switch {
	case m == nil || !w.Synced || !mirror.AwaitsEnd(m):
	case s.Job != nil && m == w.Mirror && mirror.Finished(s.Job), m.DeletionTimestamp != nil && !s.showsEndOf(w, m):
		p.attempt(s, w, LetGo{At{w.Name, m}})
	}
}

// showsEndOf reports whether the hub Job is to show the end of a mirror, and doesn't yet.
func (s *Snapshot) showsEndOf(w *Worker, m *batchv1.Job) bool {
	if s.Job == nil || m != w.Mirror || !s.needs(w) {
		return false
	}
	if s.Divided != nil {
		for _, shard := range s.Divided.Shards {
			if shard.Part.Assigned == w {
				return shard.Part.IsEndedBy(m)
			}
		}
	}
	return s.IsEndedBy(m)
}

// orphaned deletes the mirror of another hub Job of this name, which must be gone. If its watch has
// shown that, a mirror that has ended is deleted as its Job was; the Pods of one that hasn't end
// before another takes its place.
func (s *Snapshot) orphaned(w *Worker) DeleteMirror {
	d, of := deletion(w, w.Orphan), mirror.HubUID(w.Orphan)
	switch {
	case of != s.Gone.UID:
		d.VerifyGone = of
	case mirror.Finished(w.Orphan) || s.Gone.Deletion == metav1.DeletePropagationOrphan:
		d.Propagation = s.Gone.Deletion
	}
	return d
}

// addCleanup adds an action, unless a deletion is under way. An unreachable worker is left alone
// until it is connected again.
func (p *Plan) addCleanup(s *Snapshot, w *Worker, action MirrorAction) {
	p.awaitRelease(s, w)
	if w.Synced && action.at().Mirror.DeletionTimestamp == nil {
		p.attempt(s, w, action)
	}
}

// attempt adds an action, unless one failed a moment ago.
func (p *Plan) attempt(s *Snapshot, w *Worker, action MirrorAction) {
	if wait := w.Cleanups.backoff(freeCleanups, s.Now); wait > 0 {
		p.After = wake.Soonest(p.After, wait)
		return
	}
	p.Cleanup = append(p.Cleanup, action)
}

// needs reports whether the Job has a use for its mirror in a worker: it is assigned to the worker,
// waits for it, or is to be assigned to it again.
func (s *Snapshot) needs(w *Worker) bool {
	switch {
	case s.isAssigned(w):
		return true
	case mirror.Finished(s.Job):
		return false
	case s.Job.DeletionTimestamp != nil && s.isMovedFrom(w.Name):
		return true
	default:
		return w == s.former() || s.restores(w)
	}
}

// holders are the workers that have the Job's mirror by what the hub knows: the assigned ones, and
// the one that the Job was moved from. Any other mirror was given up with its worker, or was made
// up.
func (s *Snapshot) holders() []*Worker {
	return slices.DeleteFunc(s.Workers(), func(w *Worker) bool { return !s.isAssigned(w) && !s.isMovedFrom(w.Name) })
}

// deletion deletes a mirror that its Job has no use for any more, or that makes room for the Job's
// next one. Foreground: the mirror is gone only when its Pods are, so that none of them runs beside
// those of the next. The propagation policy is always named, because the API server's default for
// Jobs leaves the Pods behind.
func deletion(w *Worker, m *batchv1.Job) DeleteMirror {
	return DeleteMirror{At: At{w.Name, m}, Propagation: metav1.DeletePropagationForeground}
}

// suspending is deletion of a mirror that may run: it is suspended first, so that its Pods end at
// once even if the deletion fails.
func suspending(w *Worker) DeleteMirror {
	d := deletion(w, w.Mirror)
	d.Suspend = isRunning(w.Mirror)
	return d
}

// stale deletes a stale mirror; repeats: its progress since the Job's move is made again.
func stale(w *Worker, repeats bool) DeleteMirror {
	d := suspending(w)
	d.VerifyStale = true
	d.Repeats = repeats && w.Mirror.DeletionTimestamp == nil
	return d
}

func isRunning(m *batchv1.Job) bool { return !mirror.Suspended(m) && !mirror.Finished(m) }

// deletions deletes the mirror of a connected worker, unless that is under way.
func (w *Worker) deletions() []Action {
	if !w.isLive() {
		return nil
	}
	return []Action{deletion(w, w.Mirror)}
}
