package dispatch

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// onClusterLost reads what the user wants when the Job's worker is lost. What isn't understood is
// taken for Wait: to move a Job may mean to run it twice.
func onClusterLost(s *Snapshot) (policy string, problem []Report) {
	switch policy = s.Job.Annotations[v1alpha1.AnnotationOnClusterLost]; policy {
	case "":
		return v1alpha1.OnClusterLostResume, nil
	case v1alpha1.OnClusterLostResume, v1alpha1.OnClusterLostRestart, v1alpha1.OnClusterLostWait:
		return policy, nil
	default:
		return v1alpha1.OnClusterLostWait, []Report{warn(v1alpha1.EventInvalid, fmt.Sprintf(
			"annotation %s: %q is none of %s, %s and %s: the Job would wait for a worker that is lost",
			v1alpha1.AnnotationOnClusterLost, policy,
			v1alpha1.OnClusterLostResume, v1alpha1.OnClusterLostRestart, v1alpha1.OnClusterLostWait))}
	}
}

// lastNews is the status that follows from what the worker told before it went out of touch, if it
// tells of more than the hub shows: it may have waited for more, or for a busy hub. What the hub
// doesn't know when the worker is given up is run again. Pods that ran then are no news.
func lastNews(s *Snapshot) (next mirror.Next, ok bool) {
	m := s.Home.Mirror
	if s.Home.Synced || m == nil || m.DeletionTimestamp != nil || s.StatusRejected || !s.owns(m) {
		return mirror.Next{}, false
	}
	next, ok = mirror.Reflect(s.Job, m, s.Now).(mirror.Next)
	return next, ok && tellsMore(&s.Job.Status, &next.Status)
}

// tellsMore compares what only grows, and so can't be told again and again.
func tellsMore(shown, next *batchv1.JobStatus) bool {
	was, is := batchv1.Job{Status: *shown}, batchv1.Job{Status: *next}
	return next.Succeeded > shown.Succeeded || next.Failed > shown.Failed ||
		mirror.OutcomeOf(&is) != mirror.OutcomeOf(&was) || mirror.Finished(&is)
}

func hasLastNews(s *Snapshot) bool {
	_, ok := lastNews(s)
	return ok
}

func planLastNews(s *Snapshot) Plan {
	next, _ := lastNews(s)
	plan := s.writeStatus(next, true)
	plan.Again = true
	return plan
}

func isHomeLost(s *Snapshot) bool { return !s.Home.Synced && s.Home.Loss.Lost }

// planHomeLost gives the Job another worker. Without one that fits it stays placed where it is: if
// that worker is back first, it goes on there.
func planHomeLost(s *Snapshot) Plan {
	policy, problem := onClusterLost(s)
	lost := "worker " + s.Home.Worker + " is lost: not Ready since " + clock(s.Home.Loss.Since)
	switch {
	case policy == v1alpha1.OnClusterLostWait:
		return Plan{Reports: append(problem, warn(v1alpha1.EventLost, lost+"; the Job waits for it, as its annotation "+
			v1alpha1.AnnotationOnClusterLost+" says"))}
	case s.awaitsItsQueue():
		return Plan{Reports: []Report{warn(v1alpha1.EventLost, lost+"; the Job's queue takes it back")}}
	default:
		return Plan{
			Actions: []Action{Place{
				Leave: s.Home.Worker, Reason: lost, Must: true,
				RanUntil: s.Home.Loss.Since, FreshStart: policy == v1alpha1.OnClusterLostRestart,
			}},
			Again:      true,
			AwaitsRoom: true,
		}
	}
}

// awaitsItsQueue: the Job runs by its queue's leave, which ends with the loss.
func (s *Snapshot) awaitsItsQueue() bool {
	return s.Admission.Checked && !mirror.Suspended(s.Job)
}

// planHomeOutOfTouch does nothing: the end of a connection isn't the loss of a worker, and the hub
// Job keeps the last status that it had.
func planHomeOutOfTouch(s *Snapshot) Plan {
	if s.Home.Connecting {
		return Plan{}
	}
	policy, problem := onClusterLost(s)
	text, loss := "Out of touch with worker "+s.Home.Worker+": "+s.Home.Trouble, s.Home.Loss
	plan := Plan{Reports: problem, After: max(loss.At.Sub(s.Now), 0)}
	switch {
	case policy == v1alpha1.OnClusterLostWait:
		text += "; the Job waits for it"
	case loss.Isolated:
		text += "; no other worker is Ready either, so nothing is moved"
		plan.AwaitsRoom = true
	case !loss.At.IsZero():
		text += "; if that lasts, the Job goes on elsewhere from " + clock(loss.At) + " on"
	}
	plan.Reports = append(plan.Reports, warn(v1alpha1.EventOutOfTouch, text))
	return plan
}

// clock is a time for people.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
