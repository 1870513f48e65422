package kueue

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The chart makes the Role that allows the manager to get the Secrets of Kueue's namespace.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=multikueueclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=get;create;update

// recheckCluster is how often the manager reads a cluster's Secret, and restores its condition.
const recheckCluster = time.Minute

// clusterReconciler registers MultiKueueClusters as workers, and writes their condition Active.
type clusterReconciler struct{ *session }

// Reconcile implements reconcile.Reconciler for MultiKueueClusters; it leaves those alone that no
// check of Jobferry uses.
func (r *clusterReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &kueue.MultiKueueCluster{}
	if !r.get(ctx, request.Name, cluster) || !r.isUsed(ctx, request.Name) {
		return ctrl.Result{}, nil
	}
	s, err := r.gather(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if result, err := afterWrite(r.apply(ctx, cluster, decideCluster(s))); err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	return ctrl.Result{RequeueAfter: recheckCluster}, nil
}

func (r *clusterReconciler) gather(ctx context.Context, cluster *kueue.MultiKueueCluster) (*clusterSnapshot, error) {
	s := &clusterSnapshot{cluster: cluster, kueueNamespace: r.options.Namespace, namespace: r.namespace}
	var worker v1alpha1.WorkerCluster
	err := r.hub.Get(ctx, types.NamespacedName{Name: cluster.Name}, &worker)
	if err == nil {
		s.worker = &worker
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	if s.registration, err = r.secret(ctx, types.NamespacedName{Namespace: r.namespace, Name: cluster.Name}); err != nil {
		return nil, err
	}
	if ref := cluster.Spec.ClusterSource.KubeConfig; ref != nil && ref.LocationType != kueue.PathLocationType {
		key := types.NamespacedName{Namespace: r.options.Namespace, Name: ref.Location}
		s.secret, err = r.secret(ctx, key)
		if apierrors.IsForbidden(err) {
			s.secretProblem = fmt.Sprintf("Secret %s may not be read by the manager: a Role in %s must allow it to get Secrets", key, key.Namespace)
			err = nil
		}
	}
	return s, err
}

// secret reads a Secret without the cache, which holds registrations only; nil: there is none.
func (r *clusterReconciler) secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	var secret corev1.Secret
	if err := r.live.Get(ctx, key, &secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &secret, nil
}

func (r *clusterReconciler) apply(ctx context.Context, cluster *kueue.MultiKueueCluster, p clusterPlan) error {
	if p.create != nil {
		if err := r.hub.Create(ctx, p.create); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("register worker %s: %w", cluster.Name, err)
		}
	}
	if p.update != nil {
		if err := r.hub.Update(ctx, p.update); err != nil {
			return fmt.Errorf("rotate the credentials of worker %s: %w", cluster.Name, err)
		}
	}
	if p.active == nil {
		return nil
	}
	return r.applyCondition(ctx, cluster, cluster.Status.Conditions, *p.active)
}
