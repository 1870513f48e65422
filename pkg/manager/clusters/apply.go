package clusters

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// apply does what the plan says, in its order; a standby only connects the worker. It stops at the
// first failure: the next reconcile decides again.
func (r *reconciler) apply(ctx context.Context, s gathered, p plan) error {
	if p.renew {
		r.registry.renew(s.name)
		r.renewals[s.name] = s.now
	}
	if !s.leads {
		if p.create != nil {
			return nil
		}
		return r.connect(s.name, p.connect)
	}
	if p.addFinalizer {
		if err := r.patchFinalizers(ctx, s.secret, controllerutil.AddFinalizer); err != nil {
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
		r.writes[s.name] = ownWrite{s.now, next}
	}
	return r.remove(ctx, s, p)
}

// create makes a WorkerCluster; its creation enqueues it again. The cache may be behind: the Secret
// of a worker that has just been removed gets no other WorkerCluster.
func (r *reconciler) create(ctx context.Context, s gathered, cluster *v1alpha1.WorkerCluster) error {
	if s.secret.DeletionTimestamp != nil {
		var secret corev1.Secret
		err := r.live.Get(ctx, r.secretKey(s.secret.Name), &secret)
		if err != nil || released(&secret) {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreAlreadyExists(r.client.Create(ctx, cluster))
}

func (r *reconciler) connect(name string, c *connect) error {
	if c == nil {
		r.registry.remove(name)
		delete(r.writes, name)
		delete(r.renewals, name)
		return nil
	}
	return r.registry.ensure(name, c.settings, c.target, c.before)
}

func (r *reconciler) remove(ctx context.Context, s gathered, p plan) error {
	if p.deleteCluster {
		precondition := client.Preconditions{UID: &s.cluster.UID}
		if err := r.client.Delete(ctx, s.cluster, precondition); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if p.removeFinalizer != nil {
		if err := r.patchFinalizers(ctx, p.removeFinalizer, controllerutil.RemoveFinalizer); err != nil {
			return err
		}
	}
	for _, e := range p.events {
		r.record(s, e)
	}
	return nil
}

// patchFinalizers changes our finalizer. A change of them by someone else at the same time is a
// conflict.
func (r *reconciler) patchFinalizers(ctx context.Context, secret *corev1.Secret, change func(client.Object, string) bool) error {
	next := secret.DeepCopy()
	change(next, v1alpha1.FinalizerWorkerCluster)
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.client.Patch(ctx, next, patch))
}

func (r *reconciler) record(s gathered, e event) {
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
