package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// lookAgain is when to look again at what nothing tells of.
const lookAgain = 2 * time.Second

// Reconcile brings the shadow of one Pod up to date.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, wait, err := r.gather(ctx, request.NamespacedName)
	if err != nil || s == nil {
		r.pace.leave(request.NamespacedName)
		return ctrl.Result{RequeueAfter: wait}, err
	}
	action, after := decide(&s.snapshot)
	if action == Create {
		after = r.mayCreate(s)
	}
	if action == Nothing || after > 0 {
		r.pace.leave(s.name)
		if action == Nothing && s.needsRefill() {
			return r.inWorker(ctx, s, func() error { return r.refill(ctx, s) }), nil
		}
		return ctrl.Result{RequeueAfter: after}, nil
	}
	at := s.worker
	if at == "" {
		at = s.shadow.worker.Value()
	}
	var result ctrl.Result
	wait, err = r.inTurn(s, s.shadow.size() > 0, func() (int64, error) {
		if wait := r.pace.take(at, s.name, s.now); wait > 0 {
			result.RequeueAfter = wait
			return 0, nil
		}
		var err error
		result, err = r.apply(ctx, s, action)
		return s.shadow.size(), err // the hub has answered with all of it
	})
	return ctrl.Result{RequeueAfter: max(wait, result.RequeueAfter)}, err
}

// inTurn does what takes much memory for a Pod when it's the turn of its namespace; see models.
// Before, it returns after which time to come again.
func (r *reconciler) inTurn(s *seen, isLarge bool, do func() (bytes int64, err error)) (wait time.Duration, err error) {
	if !isLarge || s.hasTurn {
		_, err := do()
		return 0, err
	}
	s.hasTurn = true
	return r.models.inTurn(s.name.Namespace, s.now, do)
}

func (r *reconciler) apply(ctx context.Context, s *seen, action Action) (ctrl.Result, error) {
	switch action {
	case Create:
		return r.create(ctx, s)
	case WriteStatus:
		return ctrl.Result{}, r.writeStatus(ctx, s)
	case Terminate:
		return ctrl.Result{}, r.delete(ctx, s, max(s.pod.Grace, 1))
	case Remove:
		return ctrl.Result{}, r.delete(ctx, s, 0)
	case PassOn:
		return r.passOn(ctx, s)
	case Refuse:
		r.refused.tell(s.of, s.now, 0, func() {
			r.report(s, v1alpha1.EventPodNotShown, "Pod %s of worker %s isn't shown: another Pod of the hub has its name", s.name.Name, s.worker)
		})
	default:
	}
	return ctrl.Result{}, nil
}

// mayCreate returns how long shadows can't be created; zero: they can.
func (r *reconciler) mayCreate(s *seen) time.Duration {
	if !r.nodes.has(s.worker) {
		return lookAgain
	}
	return r.refused.left(s.of.UID, s.now)
}

// create creates the shadow.
func (r *reconciler) create(ctx context.Context, s *seen) (ctrl.Result, error) {
	model, wait, err := r.models.get(ctx, s.of, s.now)
	switch {
	case errors.Is(err, errAnotherJob):
		return ctrl.Result{}, nil // its event comes
	case err != nil || wait > 0:
		return ctrl.Result{RequeueAfter: wait}, err
	case model == nil:
		wait := r.refused.tell(s.of, s.now, refusedFor, func() {
			r.report(s, v1alpha1.EventPodNotShown, "The Job's Pods aren't shown: their labels and containers take more than %d KiB", maxModel>>10)
		})
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	from, err := s.pod.Report()
	if err != nil {
		return ctrl.Result{}, err //nolint:wrapcheck // it says what failed
	}
	// The answer is decoded into it, and the cache, or other shadows, share what it's made of.
	pod := newShadow(model, s.name, s.pod.UID, s.worker, from).DeepCopy()
	switch err := r.hub.Create(ctx, pod); {
	case err == nil:
		r.shadows.wrote(pod, s.worker)
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // its status may be due
	case apierrors.IsAlreadyExists(err):
		return r.apply(ctx, s, Refuse)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		wait := r.refused.tell(s.of, s.now, refusedFor, func() {
			r.report(s, v1alpha1.EventPodNotShown, "The hub doesn't let the Job's Pods be shown; the Job runs all the same: %v", err)
		})
		return ctrl.Result{RequeueAfter: wait}, nil
	default:
		return ctrl.Result{}, fmt.Errorf("create the shadow of Pod %s: %w", s.name, err)
	}
}

// writeStatus writes the worker's report. What the hub refuses of it is left out.
func (r *reconciler) writeStatus(ctx context.Context, s *seen) error {
	from, err := s.pod.Report()
	if err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	for _, patchFor := range []func(*shadow, string, *corev1.Pod) ([]byte, error){statusPatch, plainPatch} {
		var patch []byte
		if patch, err = patchFor(s.shadow, s.pod.Digest, from); err != nil {
			return fmt.Errorf("status of Pod %s: %w", s.name, err)
		}
		answer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name.Namespace, Name: s.name.Name}}
		err = r.hub.Status().Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, patch))
		if err == nil {
			r.shadows.wrote(answer, s.worker)
			s.in.Reports().Shown(s.name, s.pod.UID, s.pod.Digest)
			return nil
		}
		if !apierrors.IsInvalid(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its event comes
	}
	return fmt.Errorf("status of the shadow of Pod %s: %w", s.name, err)
}

// delete deletes the shadow; without a grace period, it's gone.
func (r *reconciler) delete(ctx context.Context, s *seen, grace int64) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name.Namespace, Name: s.name.Name}}
	err := r.hub.Delete(ctx, pod, client.Preconditions{UID: &s.shadow.uid}, client.GracePeriodSeconds(grace))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete the shadow of Pod %s: %w", s.name, err)
}

// passOn deletes the worker's Pod, if a person has deleted its shadow: neither Job nor namespace is
// being deleted, by a live read. The cache may show them later than the shadow.
func (r *reconciler) passOn(ctx context.Context, s *seen) (ctrl.Result, error) {
	meant, err := r.isMeant(ctx, s)
	if err != nil || !meant {
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	return r.inWorker(ctx, s, func() error {
		ctx, cancel := context.WithTimeout(ctx, workerTimeout)
		defer cancel()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name.Namespace, Name: s.name.Name}}
		err := s.in.Client().Delete(ctx, pod, client.Preconditions{UID: &s.pod.UID}, client.GracePeriodSeconds(int64(s.shadow.grace)))
		if apierrors.IsForbidden(err) {
			r.refused.tell(s.of, s.now, 0, func() {
				r.report(s, v1alpha1.EventPodNotDeleted, "Pod %s was deleted on the hub, but worker %s doesn't let it be deleted there: %v", s.name.Name, s.worker, err)
			})
			return nil
		}
		return client.IgnoreNotFound(err)
	}), nil
}

func (r *reconciler) isMeant(ctx context.Context, s *seen) (bool, error) {
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	key := types.NamespacedName{Namespace: s.name.Namespace, Name: s.pod.Job}
	err := r.live.Get(pages.Within(ctx, maxShadow), key, job)
	if pages.IsTooLarge(err) {
		var wait time.Duration
		wait, err = r.inTurn(s, true, func() (int64, error) {
			err := r.live.Get(ctx, key, job)
			return decoded.Size(job), err
		})
		if wait > 0 {
			return false, nil // it isn't known yet
		}
	}
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if job.UID != s.shadow.job || job.DeletionTimestamp != nil {
		return false, nil
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.live.List(ctx, all, client.MatchingFields{metav1.ObjectNameField: s.name.Namespace}); err != nil {
		return false, fmt.Errorf("namespace %s: %w", s.name.Namespace, err)
	}
	return len(all.Items) == 1 && all.Items[0].DeletionTimestamp == nil, nil
}

// inWorker sends a request to a worker, of which few are under way at a time, and one for each Pod.
// Nobody waits for it: one that hangs would keep the Pods of other workers waiting.
func (r *reconciler) inWorker(ctx context.Context, s *seen, send func() error) ctrl.Result {
	if r.busy.begin(s.worker, s.name) {
		go func() {
			defer r.busy.end(s.worker, s.name)
			workerpanic.Contain(s.worker, func() {
				if err := send(); err != nil && !errors.Is(err, clusters.ErrNotConnected) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					log.FromContext(ctx).Error(err, "A worker refuses what concerns a Pod on the hub", "worker", s.worker)
				}
			})
		}()
	}
	return ctrl.Result{RequeueAfter: lookAgain}
}

func (r *reconciler) report(s *seen, reason, note string, args ...any) {
	r.recorder.Eventf(s.of, nil, corev1.EventTypeWarning, reason, "Show", note, args...)
}
