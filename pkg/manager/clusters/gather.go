package clusters

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

// gathered is what gather has read: the input of decide.
type gathered struct {
	name string
	now  time.Time
	// leads: this replica led when it began to read; otherwise nothing is to be written.
	leads bool
	// secret is nil if there is none that registers a worker.
	secret *corev1.Secret
	// unlabelled is the Secret that registered the worker until its label was taken away.
	unlabelled *corev1.Secret
	// cluster is nil if there is none.
	cluster *v1alpha1.WorkerCluster
	// servedBy is another WorkerCluster that the Secret belongs to.
	servedBy string
	// worker is nil if the registry has none of that name.
	worker *workerState
	// unfinished counts the hub Jobs that are placed on the worker.
	unfinished int
	// stockouts are the shapes of Pods for which it's out of nodes.
	stockouts []v1alpha1.Stockout
	// lastWrite is when the status was last written by this process, lastRenewal when the worker was
	// last connected anew.
	lastWrite, lastRenewal time.Time
}

// workerState is a worker at the moment of gather.
type workerState struct {
	View
	mirrors int
	// running counts the mirrors that haven't ended, if the worker is drained.
	running int
	totals  placement.Totals
	reports []metav1.Condition
	loss    Loss
}

func (r *reconciler) gather(ctx context.Context, name string) (gathered, error) {
	s := gathered{name: name, now: r.registry.options.Clock.Now(), leads: r.registry.leadership.leads()}
	var all v1alpha1.WorkerClusterList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return s, err
	}
	r.registry.identities.recordAll(all.Items)
	secretName := name
	for i := range all.Items {
		if all.Items[i].Name == name {
			s.cluster = r.writes[name].latest(&all.Items[i])
			secretName = s.cluster.Spec.KubeconfigSecret
		}
	}
	var err error
	if s.secret, err = r.registration(ctx, secretName); err != nil {
		return s, err
	}
	if s.secret == nil && s.cluster != nil {
		if s.unlabelled, err = r.unlabelled(ctx, secretName); err != nil {
			return s, err
		}
	}
	for _, other := range all.Items {
		if s.cluster == nil && other.Spec.KubeconfigSecret == name {
			s.servedBy = other.Name
		}
	}
	s.unfinished = r.registry.options.Placements.Unfinished(name)
	s.stockouts = r.registry.options.Placements.Stockouts(name)
	s.lastWrite, s.lastRenewal = r.writes[name].at, r.renewals[name]
	s.worker = r.registry.state(name)
	return s, nil
}

// registration reads a Secret from the cache, if it registers a worker.
func (r *reconciler) registration(ctx context.Context, name string) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := r.client.Get(ctx, r.secretKey(name), &secret)
	if err != nil || !Registers(&secret, r.registry.options.Namespace) {
		return nil, client.IgnoreNotFound(err)
	}
	return &secret, nil
}

// unlabelled looks past the cache, which only has labelled Secrets, for one that still has our
// finalizer: without its label it could never be deleted.
func (r *reconciler) unlabelled(ctx context.Context, name string) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := r.live.Get(ctx, r.secretKey(name), &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case Registers(&secret, r.registry.options.Namespace) || !controllerutil.ContainsFinalizer(&secret, v1alpha1.FinalizerWorkerCluster):
		return nil, nil // the cache is behind, or it isn't ours
	}
	return &secret, nil
}

func (r *reconciler) secretKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.registry.options.Namespace, Name: name}
}

// Registers reports whether a Secret is the registration of a worker.
func Registers(object client.Object, namespace string) bool {
	return object.GetNamespace() == namespace && object.GetLabels()[v1alpha1.LabelWorkerCluster] == "true"
}
