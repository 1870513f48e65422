package job

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// carryObjects copies what the Job refers to into its worker.
func (r *Reconciler) carryObjects(ctx context.Context, t *turn, w worker, a dispatch.CarryObjects) (result, error) {
	if t.Part == nil { // it may have moved here
		r.copier.Tracker.LeaveOthers(copier.Place{NamespacedName: t.Key, Worker: w.Name()})
	}
	writes, err := r.copier.Carry(ctx, t.Job, a.Mirror, a.Kinds, w, t.allowance, r.clock.Now())
	for _, write := range writes {
		carriedTotal.WithLabelValues(w.Name(), string(write.Kind), string(write.Operation)).Inc()
	}
	if refused := (*copier.WorkerError)(nil); errors.As(err, &refused) {
		return result{}, carryRefusal(w, t.Key.Namespace, refused)
	}
	if err != nil {
		return result{}, err
	}
	return changed, nil
}

func carryRefusal(w worker, namespace string, err *copier.WorkerError) error {
	if isRefusal(err) {
		return &refusalError{worker: w.Name(), reason: v1alpha1.EventFailedCarry, text: "refused what the Job needs: " + err.Error(), blocker: blockerOf(w, namespace, err)}
	}
	return &workerError{w.Name(), err}
}

// isRegistration reports whether a Secret is the registration of a worker, which is never carried.
func (r *Reconciler) isRegistration(secret *corev1.Secret) bool {
	_, labelled := secret.Labels[v1alpha1.LabelWorkerCluster]
	return labelled && secret.Namespace == r.options.Namespace
}
