package job

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// setupCarry adds the watch of what Jobs refer to, which asks for nothing until there is such a
// Job.
func (r *Reconciler) setupCarry(mgr ctrl.Manager, wake *wakeups) error {
	book := copier.NewBook()
	watch, err := copier.NewWatch(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	}, book, wake.Wake)
	if err != nil {
		return err
	}
	r.copier = &copier.Copier{Hub: r.live, Origin: r.origin, Registers: r.registers, Book: book, Watch: watch}
	return mgr.Add(watch)
}

// registers says whether a Secret is the registration of a worker.
func (r *Reconciler) registers(secret *corev1.Secret) bool {
	_, labelled := secret.Labels[v1alpha1.LabelWorkerCluster]
	return labelled && secret.Namespace == r.options.Namespace
}

// gatherCarry adds what is known of the objects that go along with the Job.
func (r *Reconciler) gatherCarry(s *dispatch.Snapshot) {
	switch {
	case s.Job == nil || mirror.Finished(s.Job):
		r.copier.Book.Forget(s.Key)
	case s.Home == nil:
	case s.Home.Mirror == nil:
		if worker, ok := r.workers.Get(s.Home.Worker); ok {
			s.Carry.Kinds = carry.Kinds(&s.Job.Spec.Template, worker.View().Spec.Carry)
		}
	case len(carry.Marked(s.Home.Mirror)) > 0:
		record, current := r.copier.Book.Of(s.Key, s.Home.Mirror.UID)
		// What blocks may be gone from the worker, which isn't watched.
		stale := len(record.Blocked) > 0 && s.Now.Sub(record.At) >= s.Timing.Recheck
		s.Carry.Current = current && !stale
		s.Carry.Blocked, s.Carry.Notes = record.Blocked, record.Notes
	}
}

// carry brings what the Job refers to into its worker.
func (r *Reconciler) carry(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.CarryObjects) (outcome, error) {
	writes, err := r.copier.Carry(ctx, s.Job, a.Mirror, w, r.clock.Now())
	for _, write := range writes {
		carriedTotal.WithLabelValues(w.Name(), string(write.Kind), string(write.Operation)).Inc()
	}
	if refused := (*copier.WorkerError)(nil); errors.As(err, &refused) {
		return outcome{}, carryRefusal(w.Name(), refused)
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{changed: true}, nil
}

func carryRefusal(worker string, err *copier.WorkerError) error {
	if isRefusal(err) {
		return &refusalError{worker: worker, reason: v1alpha1.EventFailedCarry, text: "refused what the Job needs: " + err.Error()}
	}
	return &workerError{worker, err}
}

// checkClaims asks a worker for the PersistentVolumeClaims that a Job refers to. They hold data,
// which isn't carried.
func (r *Reconciler) checkClaims(ctx context.Context, w *clusters.Worker, job *batchv1.Job) error {
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
