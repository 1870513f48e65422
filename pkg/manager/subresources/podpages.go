package subresources

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods are read and passed on by pages, so that a Job with many of them doesn't have to fit into
// the manager's memory.
const (
	podsPerPage = 250
	// maxPages bounds what a worker can keep us busy with: 100,000 Pods, the most completions of an
	// Indexed Job.
	maxPages = 400
)

// eachPage calls do with the mirror's Pods, page by page; there is at least one, which may be
// empty.
func (at *home) eachPage(ctx context.Context, w wanted, do func(*corev1.PodList) error) error {
	selector, err := w.selector(at.job)
	if err != nil {
		return unavailable("worker %q: %s", at.worker, clean(err.Error()))
	}
	options := metav1.ListOptions{LabelSelector: selector, Limit: podsPerPage}
	for range maxPages {
		page, err := at.page(ctx, options)
		if err != nil {
			return fromWorker(at.worker, "listing Pods", err)
		}
		at.keepOwn(page)
		if err := do(page); err != nil {
			return err
		}
		if page.Continue == "" {
			return nil
		}
		options.Continue = page.Continue
	}
	return unavailable("worker %q has more than %d Pods of the Job", at.worker, maxPages*podsPerPage)
}

func (at *home) page(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, at.timeout)
	defer cancel()
	return at.core.Pods(at.job.Namespace).List(ctx, options)
}

// keepOwn leaves only Pods of the mirror: labels can be had by anybody.
func (at *home) keepOwn(page *corev1.PodList) {
	own := page.Items[:0]
	for i := range page.Items {
		if metav1.IsControlledBy(&page.Items[i], at.job) {
			page.Items[i].ManagedFields = nil
			own = append(own, page.Items[i])
		}
	}
	page.Items = own
}

// pod finds the Pod that is wanted: by its name, or else the best by rank.
func (at *home) pod(ctx context.Context, w wanted, r rank) (*corev1.Pod, error) {
	if w.pod != "" {
		return at.named(ctx, w.pod)
	}
	var best *corev1.Pod
	err := at.eachPage(ctx, w, func(page *corev1.PodList) error {
		for i := range page.Items {
			if best == nil || r.better(&page.Items[i], best) {
				best = page.Items[i].DeepCopy() // the page is let go
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if best == nil {
		return nil, notFound("Job %q has no Pod%s in worker %q", at.job.Name, w.said(), at.worker)
	}
	return best, nil
}

func (at *home) named(ctx context.Context, name string) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, at.timeout)
	defer cancel()
	pod, err := at.core.Pods(at.job.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fromWorker(at.worker, fmt.Sprintf("reading Pod %q", name), err)
	}
	// Whether there is a Pod of that name that isn't the Job's is nobody's business.
	if err != nil || !metav1.IsControlledBy(pod, at.job) {
		return nil, notFound("Job %q has no Pod %q in worker %q", at.job.Name, name, at.worker)
	}
	return pod, nil
}
