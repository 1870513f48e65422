package job

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// actInWorker carries out an action in a worker, within the worker's lane.
func (r *Reconciler) actInWorker(ctx context.Context, s *dispatch.Snapshot, action dispatch.Action) (outcome, error) {
	name, act := r.workerAction(s, action)
	worker, ok := r.workers.Get(name)
	if !ok {
		return outcome{}, nil // its removal wakes the Job
	}
	if !r.lanes.Enter(name, s.Key) {
		return outcome{}, errParked
	}
	defer r.lanes.Leave(name)
	return act(ctx, worker)
}

type workerAct func(context.Context, *clusters.Worker) (outcome, error)

func (r *Reconciler) workerAction(s *dispatch.Snapshot, action dispatch.Action) (worker string, act workerAct) {
	switch a := action.(type) {
	case dispatch.CreateMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.createMirror(ctx, s, w, a) }
	case dispatch.SeedMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.seedMirror(ctx, w, a) }
	case dispatch.CarryObjects:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.carry(ctx, s, w, a) }
	case dispatch.PatchMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.patchMirror(ctx, s, w, a) }
	case dispatch.DeleteMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.deleteMirror(ctx, s, w, a) }
	case dispatch.SuspendMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.suspendMirror(ctx, s, w, a) }
	case dispatch.ConfirmMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.confirmMirror(ctx, s, w, a) }
	case dispatch.AskWhy:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.askWhy(ctx, s, w, a) }
	case dispatch.DisownMirror:
		return a.Worker, func(ctx context.Context, w *clusters.Worker) (outcome, error) { return r.disownMirror(ctx, w, a) }
	default:
		panic(fmt.Sprintf("no such action: %T", action))
	}
}

func (r *Reconciler) createMirror(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.CreateMirror) (outcome, error) {
	if a.VerifyWanted || r.stalls.Recent() {
		wanted, err := r.isWanted(ctx, s, w.Name())
		if err != nil {
			return outcome{}, err
		}
		if !wanted {
			return outcome{}, errBehind
		}
	}
	if left, err := r.leftFormer(ctx, s); err != nil || !left {
		return outcome{changed: !left}, err
	}
	if err := r.checkClaims(ctx, w, a.Mirror); err != nil {
		return outcome{}, err
	}
	created := a.Mirror.DeepCopy()
	err := w.Client().Create(ctx, created)
	if apierrors.IsNotFound(err) && ptr.Deref(w.View().Spec.CreateNamespaces, true) {
		if err = createNamespace(ctx, w, created.Namespace); err == nil {
			created = a.Mirror.DeepCopy()
			err = w.Client().Create(ctx, created)
		}
	}
	if apierrors.IsAlreadyExists(err) {
		return r.adopt(ctx, s, w)
	}
	if err != nil {
		return outcome{}, refusalOf(w.Name(), created.Namespace, err)
	}
	r.wrote(w, created)
	r.memory.Mirrored(s.Job, r.clock.Now())
	if s.Job.Status.StartTime == nil {
		mirrorLatency.Observe(r.memory.age(s.Job, r.clock.Now()).Seconds())
	}
	return outcome{changed: true}, nil
}

// leftFormer asks the worker that a Job was moved from whether the Job is gone there: its cache may
// be behind, just after it came back. What is found is remembered, and removed first.
func (r *Reconciler) leftFormer(ctx context.Context, s *dispatch.Snapshot) (bool, error) {
	former, ok := r.workers.Get(s.Job.Annotations[v1alpha1.AnnotationMovedFrom])
	if !ok || former.Name() == s.Home.Worker || r.workers.Loss(former.Name()).State == clusters.Lost {
		return true, nil
	}
	var copied batchv1.Job
	err := former.Client().Get(ctx, s.Key, &copied)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, &workerError{former.Name(), err}
	case mirror.Owns(r.origin, s.Job.UID, &copied) != mirror.Ours:
		return true, nil
	default:
		r.wrote(former, &copied)
		return false, nil
	}
}

// createNamespace makes the namespace of a Job in a worker.
func createNamespace(ctx context.Context, w *clusters.Worker, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "jobferry"},
	}}
	return client.IgnoreAlreadyExists(w.Client().Create(ctx, namespace))
}

// adopt looks at the Job that has the mirror's name already: it's ours, if the answer to an earlier
// create was lost; or nobody's business.
func (r *Reconciler) adopt(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker) (outcome, error) {
	var existing batchv1.Job
	err := w.Client().Get(ctx, s.Key, &existing)
	if apierrors.IsNotFound(err) {
		return outcome{changed: true}, nil // gone meanwhile: create it again
	}
	if err != nil {
		return outcome{}, &workerError{w.Name(), err}
	}
	if mirror.Owns(r.origin, s.Job.UID, &existing) == mirror.Foreign {
		return outcome{}, &refusalError{worker: w.Name(), reason: v1alpha1.EventConflict,
			text: "has a Job " + s.Key.String() + " that isn't ours; it is left alone"}
	}
	r.wrote(w, &existing)
	return outcome{changed: true}, nil
}

// refusalOf tells the errors after which the worker can't take the Job from those after which to
// try again.
func refusalOf(worker, namespace string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return &refusalError{worker: worker, reason: v1alpha1.EventMirrorRefused,
			text: "has no namespace " + namespace + ", and its WorkerCluster doesn't let Jobferry create it (spec.createNamespaces)"}
	case isRefusal(err):
		return &refusalError{worker: worker, reason: v1alpha1.EventMirrorRefused, text: "refused the Job: " + err.Error()}
	default:
		return &workerError{worker, err}
	}
}

// seedMirror writes the progress made elsewhere into a mirror that hasn't started.
func (r *Reconciler) seedMirror(ctx context.Context, w *clusters.Worker, a dispatch.SeedMirror) (outcome, error) {
	answer := named(a.Mirror)
	patch := client.RawPatch(types.MergePatchType, mirror.SeedPatch(a.Mirror, &a.Status))
	if err := w.Client().Status().Patch(ctx, answer, patch); err != nil {
		return outcome{}, &workerError{w.Name(), err}
	}
	r.wrote(w, answer)
	return outcome{changed: true}, nil
}

// patchMirror changes a mirror in place, and remembers what the worker's admission changed back at
// once.
func (r *Reconciler) patchMirror(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.PatchMirror) (outcome, error) {
	answer := named(a.Mirror)
	err := w.Client().Patch(ctx, answer, client.RawPatch(types.MergePatchType, a.Patch.Bytes()))
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		r.memory.Unmet(s.Job, a.Patch, []mirror.Note{{Field: "spec", Message: "refused: " + err.Error()}}, r.clock.Now())
		return outcome{changed: true}, nil
	}
	if err != nil {
		return outcome{}, &workerError{w.Name(), err}
	}
	r.wrote(w, answer)
	r.memory.Patched(s.Job, r.clock.Now())
	r.memory.Unmet(s.Job, a.Patch, a.Patch.Unmet(answer), r.clock.Now())
	return outcome{changed: true}, nil
}

// deleteMirror deletes a mirror, and no other Job of its name.
func (r *Reconciler) deleteMirror(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.DeleteMirror) (outcome, error) {
	if a.VerifyGone != "" {
		gone, err := r.isGone(ctx, s.Key, a.VerifyGone)
		if err != nil || !gone {
			return outcome{}, err // the cache was behind: its next event brings the Job back
		}
	}
	if a.VerifyElsewhere {
		at, err := r.placedOn(ctx, s)
		if err != nil || at == nil || *at == w.Name() {
			return outcome{}, err // likewise
		}
	}
	twice := r.repeated(s, w, a) // before the deletion is all that is known of it
	err := w.Client().Delete(ctx, a.Mirror,
		client.Preconditions{UID: &a.Mirror.UID}, client.PropagationPolicy(a.Propagation))
	if client.IgnoreNotFound(err) != nil {
		return outcome{}, &workerError{w.Name(), err}
	}
	r.mirrors.In(w.Name()).Deleted(a.Mirror, r.clock.Now())
	o := r.ranTwice(ctx, s, w, twice)
	o.changed = true
	return o, nil
}

// isGone asks the hub itself whether it has no Job of this UID.
func (r *Reconciler) isGone(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	var job batchv1.Job
	err := r.live.Get(ctx, key, &job)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && job.UID != uid, err
}

func (r *Reconciler) disownMirror(ctx context.Context, w *clusters.Worker, a dispatch.DisownMirror) (outcome, error) {
	err := w.Client().Patch(ctx, named(a.Mirror), client.RawPatch(types.MergePatchType, disownPatch(a.Mirror)))
	if client.IgnoreNotFound(err) != nil {
		return outcome{}, &workerError{w.Name(), err}
	}
	return outcome{changed: true}, nil
}

func (r *Reconciler) wrote(w *clusters.Worker, job *batchv1.Job) {
	mirror.Slim(job)
	r.mirrors.In(w.Name()).Wrote(job, r.clock.Now())
}
