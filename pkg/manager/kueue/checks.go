package kueue

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=admissionchecks/status,verbs=patch

// checks keeps the condition Active of our AdmissionChecks.
type checks struct{ *session }

// Reconcile brings one AdmissionCheck up to date.
func (r *checks) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	check := r.check(ctx, request.Name)
	if check == nil || !isOurs(check) || check.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	g := gateOf(check, r.config(ctx, configName(check)))
	workers := make([]usability, 0, len(g.Workers))
	for _, name := range g.Workers {
		trouble, err := r.trouble(ctx, name)
		if err != nil {
			return ctrl.Result{}, err
		}
		workers = append(workers, usability{Worker: name, Trouble: trouble})
	}
	next := decideActive(g, workers)
	next.Message = clip(next.Message)
	next.ObservedGeneration = check.Generation
	changed := check.DeepCopy()
	if !meta.SetStatusCondition(&changed.Status.Conditions, next) {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFromWithOptions(check, client.MergeFromWithOptimisticLock{})
	return afterWrite(r.hub.Status().Patch(ctx, changed, patch))
}

// trouble says why a worker can't be used; empty: it can.
func (r *checks) trouble(ctx context.Context, name string) (string, error) {
	var worker v1alpha1.WorkerCluster
	err := r.hub.Get(ctx, types.NamespacedName{Name: name}, &worker)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if err != nil {
		return r.missing(ctx, name), nil
	}
	ready := meta.FindStatusCondition(worker.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return v1alpha1.ReasonConnecting, nil
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason, nil
	default:
		return "", nil
	}
}

// missing says why there's no WorkerCluster of a name.
func (r *checks) missing(ctx context.Context, name string) string {
	remote := &kueue.MultiKueueCluster{}
	if !r.get(ctx, name, remote) {
		return "there is no WorkerCluster and no MultiKueueCluster of that name"
	}
	active := meta.FindStatusCondition(remote.Status.Conditions, kueue.MultiKueueClusterActive)
	if active == nil || active.Status == metav1.ConditionTrue {
		return v1alpha1.ReasonConnecting
	}
	return active.Reason
}
