package job

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// carryObjects copies what the Job refers to into its worker.
func (r *Reconciler) carryObjects(ctx context.Context, t *turn, w worker, a dispatch.CarryObjects) (result, error) {
	writes, err := r.copier.Carry(ctx, t.Job, a.Mirror, a.Kinds, w, r.clock.Now())
	for _, write := range writes {
		carriedTotal.WithLabelValues(w.Name(), string(write.Kind), string(write.Operation)).Inc()
	}
	if refused := (*copier.WorkerError)(nil); errors.As(err, &refused) {
		return result{}, carryRefusal(w.Name(), refused)
	}
	if err != nil {
		return result{}, err
	}
	return changed, nil
}

func carryRefusal(worker string, err *copier.WorkerError) error {
	if isRefusal(err) {
		return &refusalError{worker: worker, reason: v1alpha1.EventFailedCarry, text: "refused what the Job needs: " + err.Error()}
	}
	return &workerError{worker, err}
}

// isRegistration reports whether a Secret is the registration of a worker, which is never carried.
func (r *Reconciler) isRegistration(secret *corev1.Secret) bool {
	_, labelled := secret.Labels[v1alpha1.LabelWorkerCluster]
	return labelled && secret.Namespace == r.options.Namespace
}

// checkVolumeClaims asks a worker for the PersistentVolumeClaims that a Job refers to. They hold
// data, which isn't carried.
func (r *Reconciler) checkVolumeClaims(ctx context.Context, w worker, job *batchv1.Job) error {
	for _, name := range carry.Claims(&job.Spec.Template) {
		var claim corev1.PersistentVolumeClaim
		err := w.Client().Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, &claim)
		switch {
		case apierrors.IsNotFound(err), err == nil && claim.DeletionTimestamp != nil:
			return &refusalError{worker: w.Name(), reason: v1alpha1.EventMirrorRefused,
				text: fmt.Sprintf("persistentvolumeclaim %q not found in namespace %s", name, job.Namespace)}
		case apierrors.IsForbidden(err): // the worker's scheduler will tell
		case err != nil:
			return &workerError{w.Name(), err}
		}
	}
	return nil
}
