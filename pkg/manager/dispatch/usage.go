package dispatch

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Used is what is known of the Pods of a Job's mirrors, in all workers.
type Used struct {
	Observations []usage.Observation
	// Before is, by mirror, the time of the Pods that were gone before this process saw the mirror.
	Before map[usage.ID]usage.Before
}

// When a Job's account is looked at again for Pods that are still there, or not known: after an
// eighth of the time that has passed.
const (
	openAtLeast = 2 * time.Second
	openAtMost  = time.Hour
	openFor     = 24 * time.Hour
)

// staleAtLeast is for how long the account of a Job that runs may be older than what is known, or
// an eighth of the time for which the Job has been there: each is a write. What a manager knows
// besides ends with it.
const staleAtLeast = 6 * time.Hour

// behindFor is for how long after a Job's end the watches of its Pods may be behind that of its
// mirror.
const behindFor = time.Minute

// Account is the Job's account as it is now.
func (s *Snapshot) Account() usage.Account { return s.account(false) }

// account is the Job's account as it is now, or as it is written with the Job's end.
func (s *Snapshot) account(ends bool) usage.Account {
	var requests corev1.ResourceList
	if !mirror.Light(s.Job) {
		requests = placement.RequestsOf(&s.Job.Spec.Template.Spec).List()
	}
	return s.Accounted.Next(usage.HubJob{
		Job: s.Job, Requests: requests,
		Unfinished: !mirror.Finished(s.Job), Afresh: mirror.StartsFresh(s.Job),
		Ends: ends, Ended: mirror.EndedAt(s.Job),
	}, s.Used.Observations, s.Used.Before, s.Now)
}

// newWriteStatus makes the write of a status, with the account and other changes of what is kept.
func (s *Snapshot) newWriteStatus(next *batchv1.JobStatus, changes hubstate.Changes) WriteStatus {
	ends := mirror.Finished(&batchv1.Job{Status: *next})
	a, kept := WriteStatus{Account: s.account(ends), Ends: ends && !mirror.Finished(s.Job)}, hubstate.Changes{}
	maps.Copy(kept, changes)
	if len(a.Account) > 0 {
		kept[hubstate.Usage] = a.Account.String()
	}
	status, finalizers := *next, s.Job.Finalizers
	status.Conditions = kept.Conditions(s.Job, next.Conditions, s.Now)
	if ends || s.lacksFinalizer() {
		finalizers = mirror.Finalizers(s.Job, !ends) // nothing is done any more that a Job would wait for which has ended
	}
	a.Patch = mirror.StatusPatch(s.Job, &status, finalizers)
	return a
}

// completeAccount has the plan write what is learnt of Pods that no status is written for: of those
// that the Job has left, of all when it has ended, and now and then of those that run on.
func (p *Plan) completeAccount(s *Snapshot) {
	ended := mirror.Finished(s.Job)
	before, next := s.Accounted, s.Account()
	refresh := s.refreshAt(before)
	if before.Lacks(next, ended) || !refresh.IsZero() && !refresh.After(s.Now) {
		p.Actions, p.Again = []Action{s.newWriteStatus(&s.Job.Status, nil)}, true
		return
	}
	p.After = wake.Soonest(p.After, wake.Until(refresh, s.Now))
	since := before.Open(next, s.Used.Observations, ended)
	if open := s.Now.Sub(since); !since.IsZero() && open < openFor {
		p.After = wake.Soonest(p.After, min(max(open/8, openAtLeast), openAtMost))
	}
	if age := s.Now.Sub(s.LastStatusWrite); ended && age < behindFor && s.hasUnseenPods() {
		p.After = wake.Soonest(p.After, max(age/2, openAtLeast))
	}
}

// refreshAt is when the account of Pods that run on is to be written again; zero: never.
func (s *Snapshot) refreshAt(written usage.Account) time.Time {
	since := written.Stale(s.Used.Observations)
	if since.IsZero() || mirror.Finished(s.Job) {
		return time.Time{}
	}
	if s.LastStatusWrite.After(since) { // whatever the account says of when that was
		since = s.LastStatusWrite
	}
	return since.Add(max(staleAtLeast, since.Sub(s.Job.CreationTimestamp.Time)/8))
}

// hasUnseenPods reports whether more Pods have ended than this process has seen.
func (s *Snapshot) hasUnseenPods() bool {
	unseen, inTouch := int64(s.Job.Status.Succeeded)+int64(s.Job.Status.Failed), false
	for i := range s.Used.Observations {
		o := &s.Used.Observations[i]
		unseen, inTouch = unseen-o.Count, inTouch || o.InTouch
	}
	return unseen > 0 && inTouch
}
