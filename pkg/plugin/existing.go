package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// registered is the workers of the hub.
type registered []v1alpha1.WorkerCluster

// listWorkers returns the workers of the hub. It fails for users of a namespace who may not see
// them, and if there is no Jobferry.
func listWorkers(ctx context.Context, hub client.Client) (registered, error) {
	var workers v1alpha1.WorkerClusterList
	err := hub.List(ctx, &workers)
	return workers.Items, err
}

// existing reads the present registration; if there is none, the request has only its names.
func (c *cli) existing(ctx context.Context, hub client.Client, name string) (registration.Request, registered, error) {
	request := registration.Request{Name: name, Namespace: c.systemNamespace}
	var err error
	if request.HubUID, err = access.UID(ctx, hub); err != nil {
		return request, nil, fmt.Errorf("hub: %w", access.Explain(err))
	}
	workers, err := listWorkers(ctx, hub)
	if err != nil {
		return request, nil, fmt.Errorf("hub: %w", access.Explain(err))
	}
	for _, w := range workers {
		if w.Name == name {
			request.Spec, request.Labels = settable(w.Spec), maps.Clone(w.Labels)
		}
	}
	var secret corev1.Secret
	err = hub.Get(ctx, types.NamespacedName{Namespace: request.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return request, workers, nil
	case err != nil:
		return request, nil, fmt.Errorf("hub: %w", access.Explain(err))
	case secret.Labels[v1alpha1.LabelWorkerCluster] != "true":
		return request, nil, fmt.Errorf("the hub's Secret %s/%s isn't a registration (it has no label %s=true): choose another name",
			request.Namespace, name, v1alpha1.LabelWorkerCluster)
	case secret.DeletionTimestamp != nil:
		return request, nil, fmt.Errorf("worker %s is being removed: wait until kubectl jobferry clusters no longer shows it", name)
	}
	fromSecret(&request, &secret)
	return request, workers, nil
}

// settable returns the fields of a spec that a registration sets. All others are the admin's.
func settable(spec v1alpha1.WorkerClusterSpec) v1alpha1.WorkerClusterSpec {
	settings := v1alpha1.WorkerClusterSpec{
		JobController: spec.JobController, Capacity: spec.Capacity,
		CreateNamespaces: spec.CreateNamespaces, Carry: spec.Carry,
	}
	if registration.SelectsNames(spec.NamespaceSelector) {
		settings.NamespaceSelector = spec.NamespaceSelector
	}
	return settings
}

// ownSelector reports whether an admin selects otherwise than by name whose Jobs a worker takes.
func (r registered) ownSelector(name string) bool {
	return slices.ContainsFunc(r, func(w v1alpha1.WorkerCluster) bool {
		return w.Name == name && w.Spec.NamespaceSelector != nil && !registration.SelectsNames(w.Spec.NamespaceSelector)
	})
}

// fromSecret adds what only the registration Secret knows.
func fromSecret(request *registration.Request, secret *corev1.Secret) {
	switch namespaces := secret.Annotations[v1alpha1.AnnotationNamespaces]; namespaces {
	case "":
	case registration.AllNamespaces:
		request.AllNamespaces = true
	default:
		request.Namespaces = strings.Split(namespaces, ",")
	}
	request.Origin = v1alpha1.Origin(secret.Annotations[v1alpha1.AnnotationHubOrigin])
	request.Token = boundtoken.Of(secret.Data[v1alpha1.KubeconfigKey])
	request.Account = secret.Annotations[v1alpha1.AnnotationAccount]
	// Only register and rotate write it: a value that can't be parsed stands for no duration.
	request.TokenDuration, _ = time.ParseDuration(secret.Annotations[v1alpha1.AnnotationTokenDuration])
	if podAccess, found := secret.Annotations[v1alpha1.AnnotationPodAccess]; found {
		request.PodAccess = strings.FieldsFunc(podAccess, func(r rune) bool { return r == ',' })
		if request.PodAccess == nil {
			request.PodAccess = []string{}
		}
	}
}

// connectAs connects to the worker of a registration, unless that cluster can't be registered so.
func (c *cli) connectAs(ctx context.Context, cmd *cobra.Command, f *workerFlags, found registered, r *registration.Request) (*workerAdmin, error) {
	worker, err := f.connect(ctx, cmd, c)
	if err != nil {
		return nil, err
	}
	return worker, found.mayBecome(r.Name, r.HubUID, worker.UID)
}

// mayBecome returns why a cluster can't be registered under a name.
func (r registered) mayBecome(name string, hub, worker types.UID) error {
	if worker == hub {
		return fmt.Errorf("the worker's context leads to the hub itself: check --worker-context")
	}
	for _, w := range r {
		switch {
		case w.Name == name && w.Status.ClusterUID != "" && w.Status.ClusterUID != worker:
			return fmt.Errorf("%s is another cluster (its kube-system namespace has UID %s, not %q): choose another name, or unregister it first",
				name, w.Status.ClusterUID, worker)
		case w.Name != name && w.Status.ClusterUID == worker:
			return fmt.Errorf("the cluster is already registered as %s: a cluster can have only one name", w.Name)
		}
	}
	return nil
}
