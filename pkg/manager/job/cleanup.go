package job

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// cleanUp has mirrors removed that the Job has no use for. Each is removed in the background: its
// worker may let the request hang, and the Job is of another worker. One attempt is made at a time.
func (r *Reconciler) cleanUp(ctx context.Context, t *turn, actions []dispatch.MirrorAction) {
	for _, action := range actions {
		w, ok := r.workers.get(action.Worker())
		if !ok || !t.record.beginCleanup(w.Name()) {
			continue
		}
		if !r.acquire(t, w) {
			t.record.endCleanup(w.Name(), nil)
			continue // the limiter enqueues the Job
		}
		r.background(func() {
			own := *t
			own.allowance = r.whole.open(t.Key) // the turn's is given back at the turn's end
			defer own.allowance.release()
			var done result
			err := contained(func() error { return own.asks(ctx, w, r.does(&own, w, action, &done)) })
			r.limiter.release(w.Name())
			if err == nil && !done.changed { // the hub's cache was behind: its next event enqueues the Job
				t.record.endCleanup(w.Name(), nil)
				return
			}
			if err != nil && !apierrors.IsConflict(err) {
				// That is no matter of the Job's user, before it takes too long: see NotReleased.
				log.FromContext(ctx).Info("Can't remove a mirror that its Job has no use for", "worker", w.Name(), "err", err.Error())
			}
			now := r.clock.Now()
			t.record.endCleanup(w.Name(), &now)
			r.enqueueRelated(t.Key)
		})
	}
}

// beginCleanup reports whether no removal of the mirror in a worker is under way, and that one is
// now.
func (r *record) beginCleanup(worker string) (begins bool) {
	r.updateMirror(worker, func(m *mirrorMemory) { begins, m.isCleaned = !m.isCleaned, true })
	return begins
}

// endCleanup ends a removal, and counts it if it was attempted.
func (r *record) endCleanup(worker string, attempted *time.Time) {
	r.updateMirror(worker, func(m *mirrorMemory) {
		m.isCleaned = false
		if attempted != nil {
			m.cleanups = m.cleanups.Next(*attempted)
		}
	})
}

// releaseClock counts how long a worker has had for removing a mirror, while it was connected and
// could be asked. The zero value doesn't run.
type releaseClock struct {
	// began is when it was started, later by the pauses that have ended.
	began time.Time
	// pausedAt is when the worker was found not to be connected, or the Job to wait for a place of the
	// worker; zero: neither. paused adds up the pauses that have ended.
	pausedAt time.Time
	paused   time.Duration
}

// maxPaused bounds the pauses: a worker may come and go, and its places may be taken for long.
const maxPaused = 15 * time.Minute

// since is when the clock would have been started without the pauses; zero: it doesn't run.
func (c *releaseClock) since(now time.Time) time.Time {
	if c.began.IsZero() || c.pausedAt.IsZero() {
		return c.began
	}
	return c.began.Add(min(max(now.Sub(c.pausedAt), 0), maxPaused-c.paused))
}

// run starts the clock, or has it pause or continue.
func (c *releaseClock) run(pauses bool, now time.Time) {
	switch {
	case c.began.IsZero():
		c.began = now
	case pauses && c.pausedAt.IsZero():
		c.pausedAt = now
	case !pauses && !c.pausedAt.IsZero():
		began := c.since(now)
		c.paused += began.Sub(c.began)
		c.began, c.pausedAt = began, time.Time{}
	}
}

// pauseRelease has a worker's clock pause until the next look: the Job waits for a place.
func (r *record) pauseRelease(worker string, now time.Time) {
	r.update(func(memory *memory) {
		if m := memory.mirrors[worker]; m != nil && !m.release.began.IsZero() {
			m.release.run(true, now)
		}
	})
}

// release keeps the time that workers have for removing mirrors, and which take too long. While the
// Job is being deleted, a worker has its time once: it may hide its mirror while another one is
// waited for, and show it again.
func (r *record) release(releases []dispatch.Release, now time.Time) {
	due := map[string]dispatch.Release{}
	for _, release := range releases {
		due[release.Worker] = release
		r.updateMirror(release.Worker, func(m *mirrorMemory) { m.release.run(release.Paused, now) })
	}
	r.update(func(memory *memory) {
		for worker, m := range memory.mirrors {
			release, isDue := due[worker]
			if m.unreleased = release.Overdue; !isDue && memory.deletion == "" {
				m.release = releaseClock{}
			}
			if m.unreleased && r.store.records[r.key] == r {
				link(r.store.kept, worker, r)
			} else {
				unlink(r.store.kept, worker, r)
			}
		}
	})
}
