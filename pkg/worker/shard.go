package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// podsPerPage bounds the answers of the API server.
const podsPerPage = 500

// confirmShard reads a shard and its Pods from the API server: once per process, and after a
// request to create a Pod that got no answer. The hub gives an index to another worker as soon as
// AnnotationIndexesObserved doesn't have it. So this controller must know of every Pod that an
// earlier process has created when it takes an index out of the annotation, and of the annotation
// that an earlier process has written when it creates a Pod. A cache may show neither for a while.
// The Job is gone if exists is false: the cache will show it.
func (r *reconciler) confirmShard(ctx context.Context, cached *batchv1.Job, known *pending) (exists bool, err error) {
	if known.confirmed || !plan.IsShard(known.latest(cached)) || plan.Finished(cached) != nil {
		return true, nil
	}
	var live batchv1.Job
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if live.UID != cached.UID {
		return false, nil
	}
	if err := r.confirmPods(ctx, &live, known); err != nil {
		return false, fmt.Errorf("list the Pods of Job %s: %w", cached.Name, err)
	}
	known.written, known.confirmed = &live, true
	return true, nil
}

// confirmPods takes the Pods that the API server has for created until the cache shows them.
func (r *reconciler) confirmPods(ctx context.Context, job *batchv1.Job, known *pending) error {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return err
	}
	cached, err := r.podsOf(ctx, job)
	if err != nil {
		return err
	}
	for more := ""; ; {
		var page corev1.PodList
		err := r.live.List(ctx, &page, client.InNamespace(job.Namespace), client.MatchingLabelsSelector{Selector: selector},
			client.Limit(podsPerPage), client.Continue(more))
		if err != nil {
			return err
		}
		for i := range page.Items {
			if metav1.IsControlledBy(&page.Items[i], job) {
				known.noteCreated(&page.Items[i], r.clock.Now())
			}
		}
		known.observe(cached)
		if more = page.Continue; more == "" {
			return nil
		}
	}
}

// noteUncreated takes note of a Pod that wasn't created, as far as one can tell.
func (p *pending) noteUncreated(err error) {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Code >= 400 && answer.Status().Code < http.StatusInternalServerError {
		return // refused
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.confirmed = false
}

// reportShard warns once of each problem with the indexes of a shard.
func (s *jobSync) reportShard(problem string) {
	if problem != "" && problem != s.known.problem {
		s.events.Event(s.job, corev1.EventTypeWarning, "InvalidIndexes", problem)
	}
	s.known.problem = problem
}

// indexesChanged reports whether the hub has changed the indexes of a shard.
func indexesChanged(before, after client.Object) bool {
	return before.GetAnnotations()[v1alpha1.AnnotationIndexes] != after.GetAnnotations()[v1alpha1.AnnotationIndexes]
}
