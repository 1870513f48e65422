package dispatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// isPlacementMissing reports whether the Job has mirrors which its placement lacks: somebody
// removed it, or the hub's etcd was put back to a backup that doesn't have it. That of a Job which
// was never placed, as far as the hub knows, counts only where the hub has lost its memory: else
// somebody in the worker made it up.
func (s *Snapshot) isPlacementMissing() bool {
	return s.missing.in != nil && (s.Assigned == nil || s.Assigned.Synced || s.Assigned.isLost()) // else it may have the mirror
}

func planPlacementMissing(s *Snapshot) Plan {
	for _, w := range s.missing.in {
		if w.Synced {
			continue
		}
		var plan Plan
		if s.Divided != nil {
			plan = s.reflectShards()
		}
		plan.After = wake.Soonest(plan.After, s.Timing.Recheck)
		plan.Reports = append(plan.Reports, warn(v1alpha1.EventPending, "Waiting for worker "+w.Name+", which has a mirror of the Job: "+w.Trouble))
		return plan
	}
	return Plan{Actions: []Action{s.missing.restore}, Again: true}
}

// restores reports whether the mirror in a worker gets the Job, or a shard of it, placed there.
func (s *Snapshot) restores(w *Worker) bool {
	return slices.Contains(s.missing.in, w)
}

// missing is what a placement lacks, and in which workers that is.
type missing struct {
	restore Restore
	in      []*Worker
}

func (s *Snapshot) findMissing() missing {
	others := s.otherMirrors()
	switch {
	case len(others) == 0:
	case shards.MayDivide(s.Job) && s.Assigned == nil && isPart(others[0].Mirror):
		return s.missingShards(others)
	case len(others) > 1 || s.Divided != nil || isPart(others[0].Mirror):
	case !s.isPlaced() && (s.hasFinalizer() || s.mayHaveForgotten(others[0])):
		return missing{Restore{To: others[0].Name}, others}
	case s.isPlaced() && s.Assigned.Mirror == nil && s.mayHaveForgotten(others[0]):
		return missing{Restore{To: others[0].Name, Reason: "which has its mirror; the hub's etcd was put back meanwhile"}, others}
	}
	return missing{}
}

// missingShards are the shards that the placement lacks.
func (s *Snapshot) missingShards(others []*Worker) (m missing) {
	var p shards.Placement
	if s.Divided != nil {
		p = s.Divided.Placement
	}
	var mirrors []shards.Mirror
	for _, w := range others {
		if isPart(w.Mirror) && s.mayHaveForgotten(w) {
			mirrors = append(mirrors, shards.Mirror{Shard: shards.Shard{Worker: w.Name}, Job: w.Mirror})
		}
	}
	p, adopted := p.Adopt(s.Job, mirrors)
	for _, w := range others {
		if slices.Contains(adopted, w.Name) {
			m.in = append(m.in, w)
		}
	}
	m.restore.Shards = &p
	return m
}

// mayHaveForgotten reports whether the hub may have placed the Job on a worker and not know that
// any more. What it knows of a mirror, it has given up.
func (s *Snapshot) mayHaveForgotten(w *Worker) bool {
	isKnown := func(m usage.Mirror) bool { return m.UID == w.Mirror.UID }
	return (w.TookOver && w.Synced || w.HeldElsewhere) && w.Removal == "" && w.Unwanted == "" && !s.isMovedFrom(w.Name) &&
		!slices.ContainsFunc(s.Accounted, isKnown)
}

// isPart reports whether a mirror is that of a shard.
func isPart(m *batchv1.Job) bool {
	_, part := m.Annotations[v1alpha1.AnnotationIndexes]
	return part
}
