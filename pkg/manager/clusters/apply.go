package clusters

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// apply does what the plan says, in its order. It stops at the first failure: the next reconcile
// decides again.
func (r *reconciler) apply(ctx context.Context, s snapshot, p plan) error {
	if p.hold {
		if err := r.patchSecret(ctx, s.secret, func(secret *corev1.Secret) { controllerutil.AddFinalizer(secret, v1alpha1.FinalizerWorkerCluster) }); err != nil {
			return err
		}
	}
	if p.create != nil {
		return r.create(ctx, s, p.create)
	}
	if err := r.connect(s.name, p.connect); err != nil {
		return err
	}
	if p.status != nil {
		next := s.cluster.DeepCopy()
		next.Status = *p.status
		if err := r.client.Status().Patch(ctx, next, client.MergeFrom(s.cluster)); err != nil {
			return client.IgnoreNotFound(err)
		}
		r.writes.note(next, s.now)
	}
	return r.letGo(ctx, s, p)
}

// create makes a WorkerCluster; its appearance brings us here again. Of a Secret that is being
// deleted the cache may be behind: that of a worker that has just been let go gets no other.
func (r *reconciler) create(ctx context.Context, s snapshot, cluster *v1alpha1.WorkerCluster) error {
	if s.secret.DeletionTimestamp != nil {
		var secret corev1.Secret
		err := r.live.Get(ctx, r.secretKey(s.secret.Name), &secret)
		if err != nil || abandoned(&secret) {
			return client.IgnoreNotFound(err)
		}
	}
	return ignore(apierrors.IsAlreadyExists, r.client.Create(ctx, cluster))
}

func (r *reconciler) connect(name string, c *connect) error {
	if c == nil {
		r.registry.remove(name)
		r.writes.forget(name)
		return nil
	}
	return r.registry.ensure(name, c.settings, c.aim, c.past)
}

func (r *reconciler) letGo(ctx context.Context, s snapshot, p plan) error {
	if p.discard {
		precondition := client.Preconditions{UID: &s.cluster.UID}
		if err := r.client.Delete(ctx, s.cluster, precondition); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if p.release != nil {
		err := r.patchSecret(ctx, p.release, func(secret *corev1.Secret) { controllerutil.RemoveFinalizer(secret, v1alpha1.FinalizerWorkerCluster) })
		if err != nil {
			return err
		}
	}
	for _, e := range p.events {
		r.tell(s, e)
	}
	return nil
}

// patchSecret changes finalizers. A change of them by someone else at the same time is a conflict,
// not lost.
func (r *reconciler) patchSecret(ctx context.Context, secret *corev1.Secret, change func(*corev1.Secret)) error {
	next := secret.DeepCopy()
	change(next)
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.client.Patch(ctx, next, patch))
}

func (r *reconciler) tell(s snapshot, e event) {
	var about []runtime.Object
	if s.secret != nil {
		about = append(about, s.secret)
	}
	if s.cluster != nil {
		about = append(about, s.cluster)
	}
	for _, object := range about {
		r.recorder.Eventf(object, nil, e.kind, e.reason, e.action, "%s", e.message)
	}
}

func ignore(is func(error) bool, err error) error {
	if is(err) {
		return nil
	}
	return err
}
