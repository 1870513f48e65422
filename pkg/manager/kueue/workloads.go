package kueue

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch

// fieldOwner is who we are in server-side apply.
const fieldOwner = client.FieldOwner(v1alpha1.ManagedByDispatcher)

// behind is when to look again after a write that somebody else's came before.
const behind = time.Second

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// workloads keeps the state of our checks of Workloads.
type workloads struct {
	*session
	queue atomic.Pointer[queue]
}

// jobChanged has the Workload of a Job looked at.
func (r *workloads) jobChanged(job types.NamespacedName) {
	q := r.queue.Load()
	if q == nil {
		return // all will be looked at
	}
	ctx := context.Background()
	var cached batchv1.Job
	if err := r.hub.Get(ctx, job, &cached); err != nil {
		return
	}
	if w := r.workloadOf(ctx, &cached); w != nil {
		(*q).Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
	}
}

// Reconcile brings our checks of one Workload up to date.
func (r *workloads) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := r.objects.Get(ctx, request.NamespacedName, &w, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var result ctrl.Result
	for _, check := range w.Status.AdmissionChecks {
		g, ours := r.gate(ctx, string(check.Name))
		if !ours {
			continue
		}
		s, err := r.gather(ctx, &w, check, g)
		if err != nil {
			return ctrl.Result{}, err
		}
		v := decideCheck(s)
		if result.RequeueAfter == 0 || v.Again > 0 && v.Again < result.RequeueAfter {
			result.RequeueAfter = v.Again
		}
		changed, err := r.write(ctx, s, v)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: behind}, nil
		case err != nil:
			return ctrl.Result{}, client.IgnoreNotFound(err)
		case changed:
			return result, nil // the watch brings the Workload back, for further checks
		}
	}
	return result, nil
}

func (r *workloads) gather(ctx context.Context, w *kueue.Workload, check kueue.AdmissionCheckState, g gate) (*situation, error) {
	s := &situation{now: time.Now(), workload: w, check: check, gate: g, options: r.options}
	owner, isJob := ownerOf(w)
	if !isJob {
		return s, nil
	}
	var job batchv1.Job
	err := r.hub.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: owner.Name}, &job)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || job.UID != owner.UID {
		return s, nil
	}
	s.job = &job
	s.admission = admissionOf(&job, w, r.gatesOf(ctx, w), nil)
	if result, known := r.jobs.PlacementResult(job.UID); known {
		s.result = &result
	}
	if home := job.Annotations[v1alpha1.AnnotationCluster]; home != "" {
		var worker v1alpha1.WorkerCluster
		if err := r.hub.Get(ctx, types.NamespacedName{Name: home}, &worker); err == nil {
			s.home = &worker
		} else if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return s, nil
}

// write makes a check what was decided; it fails with a conflict if the Workload has changed since
// it was seen.
func (r *workloads) write(ctx context.Context, s *situation, v verdict) (changed bool, err error) {
	message := clip(v.Message)
	if v.State == "" || s.check.State == v.State && s.check.Message == message {
		return false, nil
	}
	next := kueue.AdmissionCheckState{Name: s.check.Name, State: v.State, Message: message, LastTransitionTime: s.check.LastTransitionTime}
	if s.check.State != v.State {
		next.LastTransitionTime = metav1.NewTime(s.now)
	}
	if v.RequeueAfter > 0 {
		next.RequeueAfterSeconds = ptr.To(int32(v.RequeueAfter / time.Second))
	}
	patch, err := checkPatch(s.workload, next, func(name string) bool {
		_, ours := r.gate(ctx, name)
		return ours
	})
	if err != nil {
		return false, err
	}
	answer := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: s.workload.Namespace, Name: s.workload.Name}}
	err = r.hub.Status().Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, patch), fieldOwner, client.ForceOwnership)
	if err != nil {
		return false, err
	}
	log.FromContext(ctx).Info(message, "admissionCheck", next.Name, "state", next.State)
	return true, nil
}

// checkPatch makes a check what it's to be, in a Workload that is as it was seen. Our other checks
// are in it as they are: what a server-side apply leaves out, it takes away.
func checkPatch(w *kueue.Workload, next kueue.AdmissionCheckState, ours func(name string) bool) ([]byte, error) {
	var all []kueue.AdmissionCheckState
	for _, c := range w.Status.AdmissionChecks {
		switch {
		case c.Name == next.Name:
			all = append(all, next)
		case ours(string(c.Name)):
			all = append(all, kueue.AdmissionCheckState{
				Name: c.Name, State: c.State, Message: c.Message,
				LastTransitionTime: c.LastTransitionTime, RequeueAfterSeconds: c.RequeueAfterSeconds,
			})
		}
	}
	return json.Marshal(map[string]any{
		"apiVersion": kueue.SchemeGroupVersion.String(), "kind": "Workload",
		"metadata": map[string]any{"namespace": w.Namespace, "name": w.Name, "uid": w.UID, "resourceVersion": w.ResourceVersion},
		"status":   map[string]any{"admissionChecks": all},
	})
}

// clip bounds a message to what an event can show as well.
func clip(message string) string {
	const enough = 1000
	if len(message) <= enough {
		return message
	}
	return strings.ToValidUTF8(message[:enough], "") + "..."
}
