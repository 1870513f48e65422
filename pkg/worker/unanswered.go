package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// podsPerPage and pageBytes bound the answers of the API server: by how many Pods there are, and by
// the size of the template that they are made from, in bytes of protobuf. What is decoded takes up
// to fifty times as much. A page in which others have made the Pods larger has maxPageBytes at
// most, or one Pod.
const (
	podsPerPage  = 500
	pageBytes    = 1 << 20
	podBytes     = 2 << 10 // what each has besides
	maxPageBytes = 4 << 20
)

// smallPod is up to which size of a template pages are full, and smallPage how many bytes a page
// has that is read beside those of other Jobs: what a tenant has made of a few Pods takes 100 MiB.
const (
	smallPod  = 4 << 10
	smallPage = 256 << 10
)

// pageOf is how many Pods of a Job are listed at a time.
func pageOf(job *batchv1.Job) int64 {
	size := int64(job.Spec.Template.Size())
	if size <= smallPod {
		return podsPerPage
	}
	return max(min(pageBytes/(size+podBytes), podsPerPage), 1)
}

// listPods lists a page of Pods. Most pages are small; the others follow each other.
func (r *reconciler) listPods(ctx context.Context, job *batchv1.Job, selector labels.Selector, options metav1.ListOptions) (*corev1.PodList, error) {
	list := func(ctx context.Context) (*corev1.PodList, error) {
		var page corev1.PodList
		return &page, r.live.List(ctx, &page, &client.ListOptions{
			Namespace: job.Namespace, LabelSelector: selector, Limit: options.Limit, Continue: options.Continue,
		})
	}
	if page, err := list(pages.Within(ctx, smallPage)); !pages.IsTooLarge(err) {
		return page, err
	}
	r.largeReads.Lock()
	defer r.largeReads.Unlock()
	return list(pages.PageWithin(ctx, &options, maxPageBytes))
}

// maxSelector is up to which size in protobuf, which is that of its text at least, a selector is
// sent: an API server takes no URL of more than a megabyte.
const maxSelector = 64 << 10

// answered reports whether the API server has refused a request with this error, or never got it.
// After any other error the request may have been carried out.
func answered(err error) bool {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Code >= 400 && answer.Status().Code < http.StatusInternalServerError
	}
	return utilnet.IsConnectionRefused(err)
}

// noteUnanswered takes note of a request to create a Pod that got no answer. It is the only request
// that does harm if it's sent again: what breaks the connection often breaks the watch as well,
// which may then be without events for half a minute.
func (s *jobSync) noteUnanswered(p *corev1.Pod) {
	s.known.lock.Lock()
	defer s.known.lock.Unlock()
	s.known.unanswered = true
	if plan.IsShard(s.job) {
		s.known.noteUncreated(p, s.clock.Now())
	}
}

// confirmPods lists the Job's Pods, and those that it is to adopt, live. Those that the cache
// doesn't show yet count as created, and those that were created and are no longer there don't. If
// the selector is large, all Pods of the namespace are listed.
func (r *reconciler) confirmPods(ctx context.Context, job *batchv1.Job, cached []*corev1.Pod, known *pending) error {
	sent, selector := labels.Everything(), known.selectorOf(job) // which is compared with many Pods
	if job.Spec.Selector.Size() <= maxSelector {
		var err error
		if sent, err = metav1.LabelSelectorAsSelector(job.Spec.Selector); err != nil {
			return err
		}
	}
	existing, options := sets.New[types.UID](), metav1.ListOptions{Limit: pageOf(job)}
	for {
		page, err := pages.Read(ctx, &options, pages.IsTooLarge, func(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
			return r.listPods(ctx, job, sent, o)
		})
		if err != nil {
			return fmt.Errorf("list the Pods of Job %s: %w", job.Name, err)
		}
		for i := range page.Items {
			isBare := metav1.GetControllerOfNoCopy(&page.Items[i]) == nil
			mayBeOwn := metav1.IsControlledBy(&page.Items[i], job) || isBare && job.DeletionTimestamp == nil
			if mayBeOwn && selector.Matches(page.Items[i].Labels) {
				existing.Insert(page.Items[i].UID)
				r.noteCreated(known, &page.Items[i])
			}
		}
		known.observe(cached)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
		options.Limit = min(2*options.Limit, pageOf(job))
	}
	maps.DeleteFunc(known.created, func(uid types.UID, _ createdPod) bool { return !existing.Has(uid) })
	known.unanswered = false
	return nil
}
