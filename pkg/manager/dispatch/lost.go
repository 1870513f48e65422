package dispatch

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// maxValue is how many bytes of an annotation's value are read or shown: a user writes up to 256
// KiB.
const maxValue = 80

func shown(value string) string { return text.Clean(value[:min(len(value), 4*maxValue)], maxValue) }

// onClusterLost reads what the user wants when the Job's worker is lost. An unknown value counts as
// Wait, because to move a Job may mean to run it twice.
func onClusterLost(s *Snapshot) (policy string, problem []Report) {
	switch policy = s.Job.Annotations[v1alpha1.AnnotationOnClusterLost]; policy {
	case "":
		return v1alpha1.OnClusterLostResume, nil
	case v1alpha1.OnClusterLostResume, v1alpha1.OnClusterLostRestart, v1alpha1.OnClusterLostWait:
		return policy, nil
	default:
		return v1alpha1.OnClusterLostWait, []Report{warn(v1alpha1.EventInvalid, fmt.Sprintf(
			"annotation %s: %q is none of %s, %s and %s: the Job would wait for a worker that is lost",
			v1alpha1.AnnotationOnClusterLost, shown(policy),
			v1alpha1.OnClusterLostResume, v1alpha1.OnClusterLostRestart, v1alpha1.OnClusterLostWait))}
	}
}

func (w *Worker) isLost() bool { return !w.Synced && w.Loss.Lost }

// isGivenUp reports whether the worker is lost, or does not release the Job, and the user does not
// want to wait for it.
func (s *Snapshot) isGivenUp(w *Worker) bool {
	if !w.isLost() && !s.isOverdue(w) {
		return false
	}
	policy, _ := onClusterLost(s)
	return policy != v1alpha1.OnClusterLostWait
}

// unreflected is the status that follows from what a worker reported before it became unreachable,
// if that has more progress than the hub shows: a status write may have waited for the next change.
// Progress that the hub does not know when the worker is given up is made again. Which Pods were
// active then does not matter any more.
func (s *Snapshot) unreflected(w *Worker) *mirror.Next {
	m := w.Mirror
	if w.Synced || m == nil || m.DeletionTimestamp != nil || w.StatusRejected || s.Part != nil {
		return nil
	}
	next, ok := mirror.Reflect(s.Job, m, s.Now).(mirror.Next)
	if !ok || !hasMoreProgress(&s.Job.Status, &next.Status) {
		return nil
	}
	return &next
}

// hasMoreProgress compares only what never falls, so that it cannot hold again and again.
func hasMoreProgress(shown, next *batchv1.JobStatus) bool {
	was, is := batchv1.Job{Status: *shown}, batchv1.Job{Status: *next}
	return next.Succeeded > shown.Succeeded || next.Failed > shown.Failed ||
		mirror.OutcomeOf(&is) != mirror.OutcomeOf(&was) || mirror.Finished(&is)
}

func planUnreflected(s *Snapshot, w *Worker) Plan {
	plan := s.planStatus(*s.unreflected(w), nil, true)
	plan.Again = true
	return plan
}

// planLost gives the Job another worker. Without one that fits the Job stays assigned: if the lost
// worker is back first, it continues there.
func planLost(s *Snapshot, w *Worker) Plan {
	policy, problem := onClusterLost(s)
	lost := "worker " + w.Name + " is lost: not Ready since " + timestamp(w.Loss.Since)
	switch {
	case policy == v1alpha1.OnClusterLostWait:
		return Plan{Reports: append(problem, warn(v1alpha1.EventLost, lost+"; the Job waits for it, as its annotation "+
			v1alpha1.AnnotationOnClusterLost+" says"))}
	case s.Admission.Checked && !mirror.Suspended(s.Job): // the Job runs by its queue's leave, which ends with the loss
		return Plan{Reports: []Report{warn(v1alpha1.EventLost, lost+"; the Job's queue takes it back")}}
	default:
		return Plan{
			Actions: []Action{Place{
				Leave: w.Name, Reason: lost, Must: true,
				RanUntil: w.Loss.Since, FreshStart: policy == v1alpha1.OnClusterLostRestart,
			}},
			Again:          true,
			AwaitsCapacity: true,
		}
	}
}

// planUnreachable does nothing: the end of a connection is not the loss of a worker, and the hub
// Job keeps the last status that it had.
func planUnreachable(s *Snapshot, w *Worker) Plan {
	if w.Connecting {
		return Plan{}
	}
	policy, problem := onClusterLost(s)
	message := "Out of touch with worker " + w.Name + ": " + w.Trouble
	plan := Plan{Reports: problem, After: max(w.Loss.At.Sub(s.Now), 0)}
	switch {
	case policy == v1alpha1.OnClusterLostWait:
		message += "; the Job waits for it"
	case w.Loss.Isolated:
		message += "; no other worker is Ready either, so nothing is moved"
		plan.AwaitsCapacity = true
	case !w.Loss.At.IsZero():
		message += "; if that lasts, the Job continues elsewhere from " + timestamp(w.Loss.At) + " on"
	}
	plan.Reports = append(plan.Reports, warn(v1alpha1.EventOutOfTouch, message))
	return plan
}

// timestamp is a time for people.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
