package spans

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Names of spans.
const (
	// Job is the whole life of a hub Job, from its creation to its end.
	Job = "Job"
	// Waiting is from the creation to the first placement; it has the time that a queue takes.
	Waiting = "waiting"
	// Placing is the choice of a worker, and the write of it.
	Placing = "placing"
	// Mirroring is the creation of a mirror in a worker.
	Mirroring = "mirroring"
	// Running is from the start in a worker to its end there: the Job's, a suspension, or a move.
	Running = "running"
	// Reflecting is from the arrival of a mirror's change to the hub's status that shows it.
	Reflecting = "reflecting"
	// Moving is from when a worker was last known to run the Job to the placement on another.
	Moving = "moving"
)

// Deleted is the end of a Job that was deleted before it ended.
const Deleted = "Deleted"

// Span is a part of a hub Job's life.
type Span struct {
	Name string
	// Worker is where it was; empty: on the hub. From is the worker that a move leaves.
	Worker, From string
	Start, End   time.Time
	// Outcome is the Job's: Complete, Failed or Deleted. Reason is why it has failed.
	Outcome, Reason string
}

// Phases returns the spans that a write to a hub Job has ended.
func Phases(before, after *batchv1.Job, now time.Time) []Span {
	if mirror.Finished(before) {
		return nil
	}
	was, is := shards.WorkersOf(before), shards.WorkersOf(after)
	outcome, reason := outcomeOf(before, after)
	var ended []Span
	if len(was) == 0 && (len(is) > 0 || outcome != "") {
		ended = append(ended, Span{Name: Waiting, Start: before.CreationTimestamp.Time, End: now})
	}
	for _, worker := range was {
		start := startOf(before, after)
		if !start.IsZero() && (outcome != "" || mirror.TrueCondition(&after.Status, batchv1.JobSuspended) != nil || !slices.Contains(is, worker)) {
			ended = append(ended, Span{Name: Running, Worker: strings.Clone(worker), Start: start, End: now})
		}
	}
	if outcome != "" {
		ended = append(ended, Span{Name: Job, Start: before.CreationTimestamp.Time, End: now, Outcome: outcome, Reason: reason})
	}
	for i := range ended {
		ended[i].clamp(before, now)
	}
	return ended
}

// Within returns the span with its times between the Job's creation and now.
func (s Span) Within(job *batchv1.Job, now time.Time) Span {
	s.clamp(job, now)
	return s
}

func (s *Span) clamp(job *batchv1.Job, now time.Time) {
	if s.Start.Before(job.CreationTimestamp.Time) {
		s.Start = job.CreationTimestamp.Time
	}
	if s.End.After(now) {
		s.End = now
	}
	if s.Start.After(s.End) {
		s.Start = s.End
	}
}

// outcomeOf returns how a write has ended a Job; empty: it hasn't.
func outcomeOf(before, after *batchv1.Job) (outcome, reason string) {
	for _, c := range after.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return string(c.Type), c.Reason
		}
	}
	holds := func(job *batchv1.Job) bool { return slices.Contains(job.Finalizers, v1alpha1.FinalizerMirror) }
	if before.DeletionTimestamp != nil && holds(before) && !holds(after) {
		return Deleted, ""
	}
	return "", ""
}

// startOf returns when the Job has started in its workers; zero: it hasn't. The first status that
// the hub shows may be the last one.
func startOf(before, after *batchv1.Job) time.Time {
	started := before.Status.StartTime
	if started == nil {
		started = after.Status.StartTime
	}
	if started == nil {
		return time.Time{}
	}
	moved, err := time.Parse(time.RFC3339, hubstate.Get(before, hubstate.MovedAt))
	if err == nil && moved.After(started.Time) {
		return moved
	}
	return started.Time
}
