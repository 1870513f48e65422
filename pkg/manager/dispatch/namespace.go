package dispatch

import (
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// namespaceGrace is how old a Job is when it is reported that its namespace is not dispatched. The
// watch of a namespace that was labelled just before may be behind that of its Jobs.
const namespaceGrace = 2 * time.Second

// isHeldBack reports whether the Job's namespace is not dispatched, and the Job is known to have no
// mirror in a worker that it is assigned to. A placement alone proves nothing: without admission on
// the hub, its user can write one.
//
// A Job that has a mirror continues where it is: it was dispatched while its namespace allowed it,
// and to stop it halfway would surprise. It doesn't move: see placement.NamespaceClosed.
func (s *Snapshot) isHeldBack() bool {
	mayRun := func(w *Worker) bool { return w.Registered && (!w.Synced || w.Mirror != nil) }
	return s.NotDispatched != "" && !slices.ContainsFunc(s.AssignedWorkers(), mayRun)
}

func planHeldBack(s *Snapshot) Plan {
	plan := Plan{AwaitsNamespace: true}
	if wait := s.Job.CreationTimestamp.Add(namespaceGrace).Sub(s.Now); wait > 0 {
		plan.After = min(wait, namespaceGrace)
	} else {
		plan.Reports = []Report{warn(v1alpha1.EventNotDispatched, "Left alone: "+s.NotDispatched)}
	}
	return plan
}
