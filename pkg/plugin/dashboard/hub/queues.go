package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// HasQueues reports whether the hub has Kueue's API, be it forbidden to the user.
func (h *Hub) HasQueues() bool { return h.probe.has(kueue.SchemeGroupVersion.Group) }

const (
	// maxQueues is how many LocalQueues are shown, and maxQueueBytes how many bytes are read of them:
	// they're read again every few seconds, and a hub may let tenants make them.
	maxQueues     = 2000
	maxQueueBytes = 4 << 20
)

// Queues reads Kueue's queues. Users of a namespace may not see the ClusterQueues.
func (h *Hub) Queues(ctx context.Context) view.Queues {
	ctx, cancel := context.WithTimeout(ctx, detailTimeout)
	defer cancel()
	var cluster kueue.ClusterQueueList
	var problems []string
	local, err := h.localQueues(ctx)
	for _, err := range []error{h.client.List(ctx, &cluster), err} {
		switch {
		case err == nil:
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			return view.Queues{Missing: []string{"This hub doesn't have Kueue's API v1beta2."}}
		default:
			problems = append(problems, access.Explain(err).Error())
		}
	}
	if local.Continue != "" {
		problems = append(problems, fmt.Sprintf("There are more LocalQueues than the first %d, which are shown: see kubectl get localqueues.", len(local.Items)))
	}
	return view.NewQueues(cluster.Items, local.Items, problems)
}

// localQueues are the first ones.
func (h *Hub) localQueues(ctx context.Context) (*kueue.LocalQueueList, error) {
	return pages.Read(ctx, &metav1.ListOptions{Limit: maxQueues}, pages.IsTooLarge, func(ctx context.Context, o metav1.ListOptions) (*kueue.LocalQueueList, error) {
		list := &kueue.LocalQueueList{}
		return list, h.client.List(pages.PageWithin(ctx, &o, maxQueueBytes), list, client.InNamespace(h.namespace), client.Limit(o.Limit))
	})
}
