package shards

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Mirror is what is known of a shard's mirror.
type Mirror struct {
	Shard
	// Job is the mirror, whose status has passed mirror.Check; nil: there is none, or it isn't known.
	Job *batchv1.Job
	// Unknown: the worker may run Pods of which nothing is known. The Job's end waits for it.
	Unknown bool
	// GivenUp: what the mirror has done counts, and its Pods don't: nothing waits for its worker.
	GivenUp bool
}

// mayRun reports whether a mirror may have Pods, or get some, until it is as wanted.
func (m *Mirror) mayRun(isWanted func(*batchv1.Job) bool) bool {
	return m.Unknown || m.Job != nil && !m.GivenUp && !isWanted(m.Job)
}

// Combine returns the mirror that the hub Job would have if one Job controller ran all its shards,
// and the placement with the counters that the mirror's status includes: both are for one write.
// Of each shard's mirror only what is in its shard counts.
func Combine(hub *batchv1.Job, settled Counters, mirrors []Mirror, now time.Time) (*batchv1.Job, Placement) {
	c := combination{hub: hub, now: now, mirrors: mirrors, next: Placement{Settled: settled}}
	c.status = batchv1.JobStatus{Failed: settled.Failed, Succeeded: settled.Succeeded, StartTime: hub.Status.StartTime}
	c.completed = intervals.ParseLenient(hub.Status.CompletedIndexes, completions(hub))
	c.failed = intervals.ParseLenient(ptr.Deref(hub.Status.FailedIndexes, ""), completions(hub))
	for i := range mirrors {
		c.add(&mirrors[i])
	}
	c.indexes()
	c.suspension()
	c.end()
	combined := *hub
	combined.Spec.Suspend = ptr.To(c.allSuspended())
	combined.DeletionTimestamp, combined.Status = nil, c.status
	return &combined, c.next
}

// combination is one run of Combine.
type combination struct {
	hub               *batchv1.Job
	now               time.Time
	mirrors           []Mirror
	next              Placement
	status            batchv1.JobStatus
	completed, failed intervals.Set   // at the hub, and then in all
	done, lost        []intervals.Set // by shard: completed and failed there
}

// add adds a shard's mirror. Without one, the shard's counters are those that the hub shows.
func (c *combination) add(m *Mirror) {
	shard := m.Shard
	if m.Job != nil {
		shard.Counters = m.counters(c.hub)
		c.own(m)
		if !m.GivenUp {
			c.live(&m.Job.Status)
		}
	}
	c.status.Failed = sumUpTo(c.status.Failed, shard.Failed)
	c.status.Succeeded = sumUpTo(c.status.Succeeded, shard.Succeeded)
	c.next.Shards = append(c.next.Shards, shard)
}

// counters are those of the shard with its mirror's. They never fall: a mirror that isn't seeded
// yet, or is another shard's, shows less.
func (m *Mirror) counters(hub *batchv1.Job) Counters {
	next, status := m.Counters, &m.Job.Status
	var listed batchv1.UncountedTerminatedPods
	if status.UncountedTerminatedPods != nil {
		listed = *status.UncountedTerminatedPods
	}
	if !m.has(m.Job) {
		return next
	}
	next.Failed = max(next.Failed, sumUpTo(status.Failed, distinct(listed.Failed)))
	if !Indexed(hub) {
		own := int(sumUpTo(status.Succeeded, distinct(listed.Succeeded))) - (completions(hub) - m.Number)
		next.Succeeded = max(next.Succeeded, int32(min(own, m.Number)))
	}
	return next
}

func distinct(uids []types.UID) int32 { return int32(sets.New(uids...).Len()) }

// live adds the counters of existing Pods.
func (c *combination) live(s *batchv1.JobStatus) {
	c.status.Active = sumUpTo(c.status.Active, s.Active)
	c.status.Ready = ptr.To(sumUpTo(ptr.Deref(c.status.Ready, 0), ptr.Deref(s.Ready, 0)))
	c.status.Terminating = ptr.To(sumUpTo(ptr.Deref(c.status.Terminating, 0), ptr.Deref(s.Terminating, 0)))
	if s.StartTime != nil && (c.status.StartTime == nil || s.StartTime.Before(c.status.StartTime)) && c.hub.Status.StartTime == nil {
		c.status.StartTime = s.StartTime
	}
}

// own adds the indexes that a mirror has completed or failed. In a mirror that is fixed all that
// was not in its shard when it was created counts as completed from the start.
func (c *combination) own(m *Mirror) {
	within := m.Indexes
	if !IsFollowing(m.Job) {
		created, err := ParseAmount(m.Job.Annotations[v1alpha1.AnnotationIndexes], true)
		if err != nil || !Indexed(c.hub) {
			return
		}
		within = within.Intersect(created.Indexes)
	}
	n := completions(c.hub)
	done := within.Intersect(intervals.ParseLenient(m.Job.Status.CompletedIndexes, n))
	failed := within.Intersect(intervals.ParseLenient(ptr.Deref(m.Job.Status.FailedIndexes, ""), n))
	done = done.Minus(c.failed)
	c.done = append(c.done, done)
	if c.hub.Spec.BackoffLimitPerIndex != nil {
		c.lost = append(c.lost, failed.Minus(c.completed).Minus(done))
	}
}

// indexes are those of all shards. No index is in two of them.
func (c *combination) indexes() {
	c.completed = intervals.UnionOf(append(c.done, c.completed)...)
	c.failed = intervals.UnionOf(append(c.lost, c.failed)...)
	if !Indexed(c.hub) {
		return
	}
	c.status.CompletedIndexes, c.status.Succeeded = c.completed.String(), int32(c.completed.Len())
	if c.hub.Spec.BackoffLimitPerIndex != nil {
		c.status.FailedIndexes = ptr.To(c.failed.String())
	}
}

// allSuspended reports whether all mirrors are suspended; without any, whether the hub Job is.
func (c *combination) allSuspended() bool {
	some := false
	for _, m := range c.mirrors {
		if m.Job != nil {
			some = true
			if !mirror.Suspended(m.Job) {
				return false
			}
		}
	}
	return some || mirror.Suspended(c.hub)
}

// suspension says that the Job is suspended when the last of its mirrors has stopped.
func (c *combination) suspension() {
	atRest := func(m *batchv1.Job) bool { return mirror.Stopped(m) || mirror.Finished(m) }
	for i := range c.mirrors {
		if c.mirrors[i].mayRun(atRest) {
			return
		}
	}
	if mirror.Suspended(c.hub) {
		c.set(batchv1.JobSuspended, "JobSuspended", "Job suspended")
	}
}

func (c *combination) set(t batchv1.JobConditionType, reason, message string) {
	c.status.Conditions = append(c.status.Conditions, batchv1.JobCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastProbeTime: metav1.NewTime(c.now), LastTransitionTime: metav1.NewTime(c.now),
	})
}
