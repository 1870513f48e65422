package kueue

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=admissionchecks/status,verbs=patch

// checkReconciler writes the condition Active of Jobferry's AdmissionChecks.
type checkReconciler struct{ *session }

// Reconcile implements reconcile.Reconciler for AdmissionChecks.
func (r *checkReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	ac := &kueue.AdmissionCheck{}
	if !r.get(ctx, request.Name, ac) || !isOurs(ac) || ac.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	c := checkOf(ac, r.config(ctx, configName(ac)))
	workers := make([]workerState, 0, len(c.workers))
	for _, name := range c.workers {
		problem, err := r.workerProblem(ctx, name)
		if err != nil {
			return ctrl.Result{}, err
		}
		workers = append(workers, workerState{name, problem})
	}
	return afterWrite(r.applyCondition(ctx, ac, ac.Status.Conditions, decideActive(c, workers)))
}

// workerProblem says why a worker can't be used; empty: it can.
func (r *checkReconciler) workerProblem(ctx context.Context, name string) (string, error) {
	var worker v1alpha1.WorkerCluster
	err := r.hub.Get(ctx, types.NamespacedName{Name: name}, &worker)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if err != nil {
		return r.missingWorker(ctx, name), nil
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

// missingWorker says why there's no WorkerCluster of a name.
func (r *checkReconciler) missingWorker(ctx context.Context, name string) string {
	cluster := &kueue.MultiKueueCluster{}
	if !r.get(ctx, name, cluster) {
		return "there is no WorkerCluster and no MultiKueueCluster of that name"
	}
	active := meta.FindStatusCondition(cluster.Status.Conditions, kueue.MultiKueueClusterActive)
	if active == nil || active.Status == metav1.ConditionTrue {
		return v1alpha1.ReasonConnecting
	}
	return active.Reason
}

// workerState is whether a worker that a check names can be used.
type workerState struct {
	name string
	// problem says why it can't be used; empty: it can.
	problem string
}

// decideActive returns the desired condition Active of a check.
func decideActive(c check, workers []workerState) metav1.Condition {
	active := metav1.Condition{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonActive}
	if c.problem != "" {
		active.Status, active.Reason, active.Message = metav1.ConditionFalse, v1alpha1.ReasonBadConfig, c.problem
		return active
	}
	var problems []string
	for _, w := range workers {
		if w.problem != "" {
			problems = append(problems, w.name+": "+w.problem)
		}
	}
	usable := len(workers) - len(problems)
	active.Message = fmt.Sprintf("%d of %d workers can be used", usable, len(workers))
	switch {
	case usable == 0:
		active.Status, active.Reason = metav1.ConditionFalse, v1alpha1.ReasonNoUsable
	case usable < len(workers):
		active.Reason = v1alpha1.ReasonSomeActive
	}
	if len(problems) > 0 {
		active.Message += ": " + strings.Join(problems, "; ")
	}
	return active
}
