package servingcert

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reconciler gathers for decide, and applies its plan.
type reconciler struct {
	*Rotator
	cached client.Reader
	writer client.Client
}

// Reconcile handles the Secret and all targets, whichever of them changed.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	now := r.clock.Now()
	secret, targets, err := r.gather(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := decide(r.snapshot(now, secret, targets), r.options)
	r.use(ctx, p)
	errs := []error{r.inject(ctx, targets, p.bundle)}
	if p.create || len(p.drop) > 0 {
		errs = append(errs, r.write(ctx, now, secret, p)) // the watch triggers the next reconcile
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.again}, nil
}

// found is a target that exists.
type found struct {
	Target
	object client.Object
}

func (r *reconciler) gather(ctx context.Context) (*corev1.Secret, []found, error) {
	secret := &corev1.Secret{}
	err := r.cached.Get(ctx, types.NamespacedName{Namespace: r.options.Namespace, Name: r.options.SecretName}, secret)
	if apierrors.IsNotFound(err) {
		secret, err = nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("serving certificate: %w", err)
	}
	var targets []found
	for _, target := range r.options.Targets {
		object := target.empty()
		err := r.cached.Get(ctx, types.NamespacedName{Name: target.name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", target, err)
		}
		targets = append(targets, found{target, object})
	}
	return secret, targets, nil
}

func (r *reconciler) snapshot(now time.Time, secret *corev1.Secret, targets []found) snapshot {
	s := snapshot{now: now}
	if secret != nil {
		s.generations, s.unreadable = parseSecret(secret.Data)
	}
	for _, t := range targets {
		s.trusted = append(s.trusted, t.trusted(t.object)...)
	}
	return s
}

// write updates the Secret, unless it has changed since it was read.
func (r *reconciler) write(ctx context.Context, now time.Time, secret *corev1.Secret, p plan) error {
	next, err := r.next(ctx, now, secret, p)
	if err != nil {
		return err
	}
	if secret == nil {
		err = r.writer.Create(ctx, next)
	} else {
		err = r.writer.Patch(ctx, next, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{}))
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return nil // another replica was faster: the watch triggers the next reconcile
	case apierrors.IsForbidden(err) && secret == nil:
		return fmt.Errorf("there is no Secret %s/%s for the serving certificate, and the manager may not create it; "+
			"create it, empty, as the chart does: %w", r.options.Namespace, r.options.SecretName, err)
	case err != nil:
		return fmt.Errorf("serving certificate: %w", err)
	}
	return nil
}

// next is the desired Secret. Unknown entries stay.
func (r *reconciler) next(ctx context.Context, now time.Time, secret *corev1.Secret, p plan) (*corev1.Secret, error) {
	next := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: r.options.SecretName}}
	if secret != nil {
		next = secret.DeepCopy()
	}
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	for _, entry := range p.drop {
		delete(next.Data, entry)
	}
	if !p.create {
		return next, nil
	}
	g, err := newGeneration(r.options.DNSNames, now, r.options.Lifetime)
	if err != nil {
		return nil, err
	}
	next.Data[g.entry] = g.both
	log.FromContext(ctx).Info("New serving certificate", "secret", r.options.SecretName, "entry", g.entry,
		"names", r.options.DNSNames, "expires", g.expires())
	return next, nil
}

// use makes GetCertificate return what was decided.
func (r *reconciler) use(ctx context.Context, p plan) {
	before := r.serve.Swap(p.serve)
	if p.serve != nil && (before == nil || before.entry != p.serve.entry) {
		log.FromContext(ctx).Info("Serving certificate in use", "secret", r.options.SecretName, "entry", p.serve.entry)
	}
}

// inject writes the bundle to the targets, unless it's empty.
func (r *reconciler) inject(ctx context.Context, targets []found, bundle []byte) error {
	if len(bundle) == 0 {
		return nil
	}
	for _, t := range targets {
		next := t.object.DeepCopyObject().(client.Object)
		if !t.inject(next, bundle) {
			continue
		}
		err := r.writer.Patch(ctx, next, client.MergeFromWithOptions(t.object, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", t.Target, err)
		}
	}
	return nil
}
