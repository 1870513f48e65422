package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/fence"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

// worker is what a renewer needs of a *clusters.Worker.
type worker interface {
	Name() string
	View() clusters.View
	LostTimeout() time.Duration
	Mirrors() []*batchv1.Job
	Client() client.Client
}

// renewer keeps the Lease in one worker.
type renewer struct {
	worker  worker
	options Options
	report  func(worker string, c metav1.Condition)

	kicked chan struct{} // room for one: the worker has news
	// gone: the Lease has been removed, and wasn't made since.
	gone       bool
	unanswered int // renewals without an answer of the worker's controller
}

func newRenewer(w worker, o Options, report func(string, metav1.Condition)) *renewer {
	return &renewer{worker: w, options: o, report: report, kicked: make(chan struct{}, 1)}
}

// run keeps the Lease until the context ends. It leaves it as it is then: another leader goes on.
func (r *renewer) run(ctx context.Context) {
	timer := r.options.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.kicked:
		case <-timer.C():
		}
		timer.Reset(r.turn(ctx))
	}
}

// turn does what is due, and answers with the time to the next.
func (r *renewer) turn(ctx context.Context) time.Duration {
	// A request that takes longer than this is of no more use than the next one.
	ctx, cancel := context.WithTimeout(ctx, r.options.Interval)
	defer cancel()
	var err error
	switch view := r.worker.View(); decide(view, r.worker.Mirrors()) {
	case renew:
		err = r.renew(ctx)
	case remove:
		err = r.remove(ctx, view)
	case wait:
	}
	switch c := failed(err); {
	case c != nil:
		r.report(r.worker.Name(), *c)
	case err != nil && !errors.Is(err, clusters.ErrNotConnected) && ctx.Err() == nil:
		klog.FromContext(ctx).Info("The fence's Lease wasn't written, will try again", "worker", r.worker.Name(), "err", err)
	}
	return pause(r.options.Interval, r.unanswered)
}

func (r *renewer) renew(ctx context.Context) error {
	want := lease(r.options, r.worker.LostTimeout(), r.options.Clock.Now())
	patch, err := renewal(want)
	if err != nil {
		return err
	}
	r.gone = false
	is := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	err = r.worker.Client().Patch(ctx, is, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		is = want
		err = r.create(ctx, is)
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s/%s: %w", want.Namespace, want.Name, err)
	}
	if word, ours := fence.Read(is); ours {
		r.answered(word)
	}
	return nil
}

func (r *renewer) answered(word fence.Lease) {
	r.unanswered++
	if word.After > 0 {
		r.unanswered = 0
	}
	r.report(r.worker.Name(), renewed(word))
}

// create makes the Lease, and its namespace if need be.
func (r *renewer) create(ctx context.Context, l *coordinationv1.Lease) error {
	err := r.worker.Client().Create(ctx, l)
	if !apierrors.IsNotFound(err) {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: v1alpha1.SystemNamespace, Labels: map[string]string{"app.kubernetes.io/managed-by": "jobferry"},
	}}
	if err := r.worker.Client().Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return r.worker.Client().Create(ctx, l)
}

// remove deletes the Lease, once.
func (r *renewer) remove(ctx context.Context, view clusters.View) error {
	r.unanswered = 0
	if !r.gone {
		l := lease(r.options, 0, r.options.Clock.Now())
		err := r.worker.Client().Delete(ctx, l)
		// Who may not delete it has not made it: there's nothing to wait for.
		if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("delete Lease %s/%s: %w", l.Namespace, l.Name, err)
		}
		r.gone = true
	}
	r.report(r.worker.Name(), removed(view))
	return nil
}

// kick makes run have a look.
func (r *renewer) kick() {
	select {
	case r.kicked <- struct{}{}:
	default: // it will have one anyway
	}
}
