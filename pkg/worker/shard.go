package worker

import (
	"context"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// answerTimeout is after how long a request that got no answer has no effect any more: an API
// server gives up a request after a minute.
const answerTimeout = 90 * time.Second

// shardMemory is what the controller knows of a shard beyond its Pods.
type shardMemory struct {
	// confirmed: pending has what an earlier process, or a request without an answer, has written
	// and the cache may not show yet.
	confirmed bool
	// unanswered are the indexes with a request to create a Pod that got no answer, and until when
	// it may still have an effect. They aren't given back before.
	unanswered map[int]time.Time
	problem    string // as the last event had it
}

func (m *shardMemory) unansweredIndexes() intervals.Set {
	return intervals.Of(slices.Collect(maps.Keys(m.unanswered))...)
}

// expire drops the requests that can have no effect any more; what they have done is to be
// confirmed.
func (m *shardMemory) expire(now time.Time) {
	for index, until := range m.unanswered {
		if !now.Before(until) {
			delete(m.unanswered, index)
			m.confirmed = false
		}
	}
}

// expireIn returns the wake-up for the first of them.
func (m *shardMemory) expireIn(now time.Time) (first time.Duration) {
	for _, until := range m.unanswered {
		first = wake.Soonest(first, wake.In(until.Sub(now)))
	}
	return first
}

// confirmShard reads a shard and its Pods from the API server: once per process, and some time
// after a request to create a Pod that got no answer. The hub gives an index to another worker as
// soon as AnnotationIndexesObserved doesn't have it. So this controller must know of every Pod that
// an earlier process has created when it takes an index out of the annotation, and of the
// annotation that an earlier process has written when it creates a Pod. A cache may show neither
// for a while. The Job is gone if exists is false: the cache will show it.
func (r *reconciler) confirmShard(ctx context.Context, cached *batchv1.Job, known *pending) (exists bool, err error) {
	m := &known.shard
	m.expire(r.clock.Now())
	if m.confirmed || !plan.IsShard(known.latest(cached)) || plan.Finished(cached) != nil {
		return true, nil
	}
	var live batchv1.Job
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if live.UID != cached.UID {
		return false, nil
	}
	pods, err := r.podsOf(&live, known.selectorOf(&live), known)
	if err != nil {
		return false, err
	}
	if err := r.confirmPods(ctx, &live, pods, known); err != nil {
		return false, err
	}
	known.written, m.confirmed = &live, true
	return true, nil
}

// noteUncreated takes note of a Pod that wasn't created, as far as one can tell.
func (p *pending) noteUncreated(pod *corev1.Pod, now time.Time) {
	if p.shard.unanswered == nil {
		p.shard.unanswered = map[int]time.Time{}
	}
	p.shard.unanswered[plan.CompletionIndex(pod)] = now.Add(answerTimeout)
}

// reportShard warns once of each problem with the indexes of a shard.
func (s *jobSync) reportShard(problem string) {
	if problem != "" && problem != s.known.shard.problem {
		s.events.Event(s.job, corev1.EventTypeWarning, "InvalidIndexes", problem)
	}
	s.known.shard.problem = problem
}

// indexesChanged reports whether the hub has changed the indexes of a shard.
func indexesChanged(before, after client.Object) bool {
	return before.GetAnnotations()[v1alpha1.AnnotationIndexes] != after.GetAnnotations()[v1alpha1.AnnotationIndexes]
}
