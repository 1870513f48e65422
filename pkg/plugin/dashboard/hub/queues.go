package hub

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// HasQueues reports whether the hub has Kueue's API, be it forbidden to the user.
func (h *Hub) HasQueues() bool { return h.probe.has(kueue.SchemeGroupVersion.Group) }

// Queues reads Kueue's queues. Users of a namespace may not see the ClusterQueues.
func (h *Hub) Queues(ctx context.Context) view.Queues {
	ctx, cancel := context.WithTimeout(ctx, detailTimeout)
	defer cancel()
	var cluster kueue.ClusterQueueList
	var local kueue.LocalQueueList
	var problems []string
	for _, err := range []error{h.client.List(ctx, &cluster), h.client.List(ctx, &local, client.InNamespace(h.namespace))} {
		switch {
		case err == nil:
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			return view.Queues{Missing: []string{"This hub doesn't have Kueue's API v1beta2."}}
		default:
			problems = append(problems, access.Explain(err).Error())
		}
	}
	return view.NewQueues(cluster.Items, local.Items, problems)
}
