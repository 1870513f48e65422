package dispatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// A copy is a mirror that nobody but somebody in its worker has made, such as by restoring it from
// a backup: what the hub Job has done there is done again. It may have ended by the time that it's
// seen.

// isCopy reports whether the hub Job's account has mirrors in a worker that the Job has left, or
// that ended with it, and not this one.
func (s *Snapshot) isCopy(w *Worker) bool {
	if w.Own || !s.hadOther(w) {
		return false
	}
	account := s.Accounted
	return account.Of(usage.ID{Worker: w.Name, UID: w.Mirror.UID}).UID == "" && slices.ContainsFunc(account, func(m usage.Mirror) bool {
		return m.Worker == w.Name && (!m.Left || !s.isAssigned(w)) // one that it left there may have made room for this one
	})
}

// hadOther reports whether the account has another mirror in a worker. Nearly always it hasn't, and
// needn't be read.
func (s *Snapshot) hadOther(w *Worker) bool {
	return slices.ContainsFunc(s.Used.Observations, func(o usage.Observation) bool {
		return o.Worker == w.Name && o.UID != w.Mirror.UID
	})
}

// replaced reports a mirror that nobody knows, in the place of one of which Pods ran. The manager
// that led before may have replaced the mirror of a shard, but only after its Pods, and for what
// was left of the shard.
func (s *Snapshot) replaced(w *Worker, part *Part) Plan {
	if w.Mirror == nil || w.Own || !s.hadOther(w) {
		return Plan{}
	}
	isSettled := part != nil && shards.Remaining(part.HubJob, part.Shard).Len() == 0
	for _, m := range s.Accounted {
		ran := m.Pods > 0 || (part == nil || isSettled) && (m.Count > 0 || m.Seconds > 0)
		if m.Worker == w.Name && m.UID != w.Mirror.UID && !m.Left && ran {
			return Plan{Reports: []Report{warn(v1alpha1.EventMirrorRecreated, "Worker "+w.Name+
				" has another Job in the place of the one that the hub knew, such as one that somebody restored from a backup: what its Pods did may be done again")}}
		}
	}
	return Plan{}
}

func replacedWhole(s *Snapshot, w *Worker) Plan { return s.replaced(w, nil) }

// copied reports a copy of the mirror of a hub Job under another name. That has no hub Job, or
// another one.
func (w *Worker) copied() []Report {
	if w.CopyOf == nil || w.Orphan.DeletionTimestamp != nil {
		return nil
	}
	report := warn(v1alpha1.EventMirrorStopped, "Worker "+w.Name+" has a mirror of the Job under another name, "+w.Orphan.Name+
		", such as one that somebody restored from a backup: "+stops(w.Orphan))
	report.On, report.About = w.CopyOf, w.Orphan.Name
	return []Report{report}
}

// stops says what becomes of a mirror that its Job has no use for.
func stops(m *batchv1.Job) string {
	if mirror.Finished(m) {
		return "it has ended there, so that work may have been done twice, and it's removed"
	}
	return "it's suspended, and removed there"
}
