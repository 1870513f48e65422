package shards

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Part returns the Job that a shard's worker is to run, as if that were a hub Job of its own: what
// package mirror derives from it is the shard's mirror. It shares with the hub Job what is equal.
//
// Its status is the progress that a new mirror starts from. If the shard is fixed while its mirror
// runs, all that isn't in the shard counts as completed; see Follows.
func Part(hub *batchv1.Job, s Shard, follows bool) *batchv1.Job {
	part := *hub
	part.Spec.Parallelism = ptr.To(s.Parallelism)
	part.Spec.SuccessPolicy, part.Spec.MaxFailedIndexes = nil, nil
	if s.Stopping {
		part.Spec.Suspend = ptr.To(true)
	}
	part.Status = batchv1.JobStatus{StartTime: hub.Status.StartTime, Failed: s.Failed, Conditions: hubstate.Of(hub, s.Worker)}
	n := completions(hub)
	if !Indexed(hub) {
		part.Status.Succeeded = int32(n-s.Number) + s.Succeeded
		return &part
	}
	completed := s.Indexes.Intersect(intervals.ParseLenient(hub.Status.CompletedIndexes, n))
	if !follows {
		completed = completed.Union(intervals.Range(0, n).Minus(s.Indexes))
	}
	part.Status.CompletedIndexes, part.Status.Succeeded = completed.String(), int32(completed.Len())
	if hub.Spec.BackoffLimitPerIndex != nil {
		failed := s.Indexes.Intersect(intervals.ParseLenient(ptr.Deref(hub.Status.FailedIndexes, ""), n))
		part.Status.FailedIndexes = ptr.To(failed.String())
	}
	return &part
}

// Asked is what the shard's mirror is to run: the shard without what its worker is asked to give
// back.
func (s Shard) Asked() Amount {
	asked := s.Amount
	asked.Indexes = asked.Indexes.Minus(intervals.ParseLenient(s.Returning, intervals.NoLimit))
	return asked
}

// Held are the indexes that the worker of an elastic shard can start or has Pods of, by its mirror.
// They are known only if the mirror names the indexes that the hub asks for now.
func (s Shard) Held(m *batchv1.Job) (held intervals.Set, known bool) {
	observed, err := intervals.ParseStrict(m.Annotations[v1alpha1.AnnotationIndexesObserved], intervals.NoLimit)
	known = err == nil && IsFollowing(m) && m.Annotations[v1alpha1.AnnotationIndexes] == s.Asked().String()
	return s.Asked().Indexes.Union(observed), known
}

// Returned are the indexes that remain of an elastic shard, and that its worker has given back, by
// its mirror.
func (s Shard) Returned(hub, m *batchv1.Job) intervals.Set {
	held, known := s.Held(m)
	if !known {
		return nil
	}
	asked := intervals.ParseLenient(s.Returning, intervals.NoLimit)
	return Remaining(hub, s).Indexes.Intersect(asked).Minus(held)
}

// Follows reports whether a shard can change while its mirror runs: the embedded Job controller
// follows the indexes that the mirror names.
func Follows(hub *batchv1.Job, controller v1alpha1.JobController) bool {
	return Indexed(hub) && controller == v1alpha1.JobControllerEmbedded
}

// IsOutdated reports whether a mirror has to be replaced: it is not one of this shard, or was
// created before the Job's completions were changed.
func (s Shard) IsOutdated(hub, m *batchv1.Job) bool {
	return !s.has(m) || ptr.Deref(m.Spec.Completions, 0) != ptr.Deref(hub.Spec.Completions, 0)
}

// has reports whether a mirror was created for this shard.
func (s Shard) has(m *batchv1.Job) bool {
	indexes, divided := m.Annotations[v1alpha1.AnnotationIndexes]
	return divided && (IsFollowing(m) || indexes == s.String())
}

// IsFollowing reports whether a mirror's shard can change while it runs.
func IsFollowing(m *batchv1.Job) bool {
	return Indexed(m) && ptr.Deref(m.Spec.ManagedBy, "") == v1alpha1.ManagedByWorker
}
