package worker

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// cacheLag is how late the cache may be before the API server is asked whether the created Pods
// still exist.
const cacheLag = 10 * time.Second

// gather reads what a sync needs. It first adopts and releases Pods.
func (r *reconciler) gather(ctx context.Context, job *batchv1.Job, known *pending, until time.Time) (plan.Snapshot, error) {
	selector := known.selectorOf(job)
	cached, err := r.podsOf(job, selector, known)
	if err != nil {
		return plan.Snapshot{}, err
	}
	known.observe(cached)
	if known.unanswered || known.isOverdue(r.clock.Now()) {
		if err := r.confirmPods(ctx, job, cached, known); err != nil {
			return plan.Snapshot{}, err
		}
	}
	pods, err := r.adoptAndRelease(ctx, job, selector, cached, known, until)
	if err != nil {
		return plan.Snapshot{}, err
	}
	return plan.Snapshot{
		Job: job, Pods: pods, Pending: known.writes(), Backoff: known.backoff,
		Fenced: r.mustNotRun(job), Unanswered: known.shard.unansweredIndexes(), Now: r.clock.Now(),
	}, nil
}

// podsOf returns the Pods of the Job and those that it could adopt. They belong to the cache and
// must not be changed. A Job whose selector wants its UID, as they do by default, isn't compared
// with all Pods of its namespace that have no controller. One that is being deleted is compared
// with none, once the cache shows what it has adopted.
func (r *reconciler) podsOf(job *batchv1.Job, selector plan.Selector, known *pending) ([]*corev1.Pod, error) {
	pods, err := r.cached.podsBy(controlledBy(job.Namespace, job.UID))
	if err != nil || job.DeletionTimestamp != nil && len(known.adopted) == 0 {
		return pods, err
	}
	bare, err := r.cached.podsBy(withoutController(job.Namespace, selector.Value(batchv1.ControllerUidLabel)))
	if err != nil {
		return nil, err
	}
	for _, p := range bare {
		if selector.Matches(p.Labels) {
			pods = append(pods, p)
		}
	}
	return pods, nil
}

// adoptAndRelease makes the Job's Pods those that its selector matches, and returns them. When its
// time is over, the next sync goes on: nothing may be decided before it has all Pods.
func (r *reconciler) adoptAndRelease(
	ctx context.Context, job *batchv1.Job, selector plan.Selector, pods []*corev1.Pod, known *pending, until time.Time,
) ([]*corev1.Pod, error) {
	o := plan.OwnershipOf(job, selector, pods, known.writes(), r.options.TrackingFinalizer)
	if len(o.Adopt) > 0 {
		if err := r.mayAdopt(ctx, job); err != nil {
			return nil, err
		}
	}
	var conflict error // of Pods that the next sync adopts, or sees adopted
	for _, p := range o.Adopt {
		if r.clock.Now().After(until) {
			return nil, errNotAllAdopted
		}
		adopted, err := r.pods.adopt(ctx, job, p)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsConflict(err):
			conflict = fmt.Errorf("adopt Pod %s: %w", p.Name, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("adopt Pod %s: %w", p.Name, err)
		}
		known.noteAdopted(adopted)
		o.Owned = append(o.Owned, adopted)
	}
	if conflict != nil {
		return nil, conflict
	}
	released := false // those that can't be released don't keep the Job from being looked at
	for _, p := range o.Release {
		if released && r.clock.Now().After(until) {
			return nil, errNotAllAdopted
		}
		err := r.pods.release(ctx, job, p)
		if client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) {
			return nil, fmt.Errorf("release Pod %s: %w", p.Name, err)
		}
		released = released || err == nil
	}
	return o.Owned, nil
}

// mayAdopt asks the API server: a Job that is being deleted must not take Pods, and the cache may
// not know that it is.
func (r *reconciler) mayAdopt(ctx context.Context, job *batchv1.Job) error {
	key := client.ObjectKeyFromObject(job)
	live, err := r.metadata.get(ctx, key, key)
	if err != nil {
		return fmt.Errorf("get the Job before adopting Pods: %w", err)
	}
	if live.UID != job.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("job %s/%s is being deleted or gone: it adopts no Pods", job.Namespace, job.Name)
	}
	return nil
}
