package job

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// halted is a mirror that is halted, how, and since when.
type halted struct {
	of    types.UID
	how   dispatch.Halt
	since time.Time
}

// pods reads what is known of the mirror's Pods.
func (g *gatherer) pods(s *dispatch.Snapshot, w *dispatch.Worker, m mirrorMemory, v workerView) dispatch.PodsReport {
	if w.Mirror == nil {
		return dispatch.PodsReport{}
	}
	p := dispatch.PodsReport{}
	if m.waiting == w.Mirror.UID {
		p.WaitingSince = m.waitingSince
	}
	if m.halted.of == w.Mirror.UID {
		p.Halt, p.HaltedSince = m.halted.how, m.halted.since
	}
	if v.View().Capacity.Known {
		p.Known, p.Report = true, v.Unschedulable(objectnames.ID{Namespace: w.Mirror.Namespace, UID: w.Mirror.UID})
	}
	about := w.Mirror.UID
	if w.Mirror.Status.Active > 0 {
		about = p.Preparing
	}
	if about != "" && m.asked == about {
		p.Asked, p.Answer = s.Now.Sub(m.askedAt) < g.timing.StuckTimeout, m.answer
	}
	return p
}

// rememberWaiting takes over since when a mirror waits for its first Pod.
func (t *turn) rememberWaiting(w *dispatch.Worker) {
	if !w.IsWaiting() && w.Pods.WaitingSince.IsZero() {
		return
	}
	t.record.updateMirror(w.Name, func(m *mirrorMemory) {
		switch {
		case !w.IsWaiting():
			m.waiting, m.waitingSince = "", time.Time{}
		case m.waiting != w.Mirror.UID:
			m.waiting, m.waitingSince = w.Mirror.UID, t.Now
		}
	})
}

// rememberHalted takes over since when a mirror is halted in one way.
func (t *turn) rememberHalted(w *dispatch.Worker) {
	how := w.Halted()
	if how == w.Pods.Halt {
		return // nearly always
	}
	t.record.updateMirror(w.Name, func(m *mirrorMemory) {
		if m.halted = (halted{}); how != "" {
			m.halted = halted{w.Mirror.UID, how, t.Now}
		}
	})
}
