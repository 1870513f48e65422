package shards

import (
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/outcome"
)

// judgements apply in order, the first match wins, as in a Job controller: what the hub Job says
// stands, and failures go before successes.
var judgements = []func(*combination) (outcome.Outcome, bool){
	recorded,
	failedInShard,
	backoffLimitExceeded,
	deadlineExceeded,
	ofIndexes,
	completionsReached,
}

// end adds the conditions that lead to the Job's end. It is final when no shard can have Pods.
func (c *combination) end() {
	for _, judge := range judgements {
		o, ends := judge(c)
		if !ends {
			continue
		}
		c.set(o.Interim, o.Reason, o.Message)
		if c.haveAllEnded() {
			c.set(o.Final(), o.Reason, o.Message)
			// the API server demands one, and a Job that is suspended has none
			if c.status.StartTime == nil {
				c.status.StartTime = ptr.To(metav1.NewTime(c.now))
			}
			if !o.Failed() {
				c.status.CompletionTime = c.completionTime()
			}
		}
		return
	}
}

func recorded(c *combination) (outcome.Outcome, bool) {
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if found := mirror.TrueCondition(&c.hub.Status, t); found != nil {
			return outcome.Outcome{Interim: t, Reason: found.Reason, Message: found.Message}, true
		}
	}
	return outcome.Outcome{}, false
}

// Ending returns the condition that leads to the hub Job's end, which is written to all mirrors;
// nil: there is none.
func Ending(hub *batchv1.Job) *batchv1.JobCondition {
	if success := mirror.TrueCondition(&hub.Status, batchv1.JobSuccessCriteriaMet); success != nil {
		return success
	}
	return mirror.TrueCondition(&hub.Status, batchv1.JobFailureTarget)
}

// failedInShard: the first shard that fails for another reason than its own indexes fails the Job.
func failedInShard(c *combination) (outcome.Outcome, bool) {
	var first *batchv1.JobCondition
	for _, m := range c.mirrors {
		if m.Job == nil || !m.has(m.Job) {
			continue
		}
		failed := mirror.TrueCondition(&m.Job.Status, batchv1.JobFailureTarget)
		if failed == nil {
			failed = mirror.TrueCondition(&m.Job.Status, batchv1.JobFailed)
		}
		if failed == nil || failed.Reason == batchv1.JobReasonFailedIndexes {
			continue
		}
		if first == nil || failed.LastTransitionTime.Before(&first.LastTransitionTime) {
			first = failed
		}
	}
	if first == nil {
		return outcome.Outcome{}, false
	}
	return outcome.Outcome{Interim: batchv1.JobFailureTarget, Reason: first.Reason, Message: first.Message}, true
}

func backoffLimitExceeded(c *combination) (outcome.Outcome, bool) {
	return outcome.BackoffLimitExceeded, c.status.Failed > ptr.Deref(c.hub.Spec.BackoffLimit, math.MaxInt32)
}

func deadlineExceeded(c *combination) (outcome.Outcome, bool) {
	at := Deadline(c.hub)
	return outcome.DeadlineExceeded, !at.IsZero() && !c.now.Before(at)
}

// Deadline is when a Job has been active for longer than it may; zero: never.
func Deadline(hub *batchv1.Job) time.Time {
	limit, start := hub.Spec.ActiveDeadlineSeconds, hub.Status.StartTime
	if limit == nil || start == nil || mirror.Suspended(hub) {
		return time.Time{}
	}
	return start.Add(time.Duration(*limit) * time.Second)
}

func ofIndexes(c *combination) (outcome.Outcome, bool) {
	if !Indexed(c.hub) {
		return outcome.Outcome{}, false
	}
	return outcome.OfIndexes(&c.hub.Spec, c.completed, c.failed)
}

func completionsReached(c *combination) (outcome.Outcome, bool) {
	return outcome.CompletionsReached, int(c.status.Succeeded) >= completions(c.hub)
}

// haveAllEnded reports whether no shard has Pods, or can start one. A mirror that is stopped has
// yet to end: its worker keeps the last failed Pods of indexes until then.
func (c *combination) haveAllEnded() bool {
	for i := range c.mirrors {
		if c.mirrors[i].mayRun(mirror.Finished) {
			return false
		}
	}
	return true
}

// completionTime is when the last mirror ended.
func (c *combination) completionTime() *metav1.Time {
	var last *metav1.Time
	for _, m := range c.mirrors {
		if m.Job != nil && m.Job.Status.CompletionTime != nil && (last == nil || last.Before(m.Job.Status.CompletionTime)) {
			last = m.Job.Status.CompletionTime
		}
	}
	if last == nil {
		return ptr.To(metav1.NewTime(c.now))
	}
	return last
}
