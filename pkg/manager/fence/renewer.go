package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

// worker is what a renewer needs of a *clusters.Worker.
type worker interface {
	Name() string
	View() clusters.View
	LostTimeout() time.Duration
	Mirrors() []packed.Facts
	Client() client.Client
}

// renewer renews the Lease in one worker.
type renewer struct {
	worker  worker
	options Options
	report  func(worker string, c metav1.Condition)

	woken      chan struct{} // buffered, for one
	seen       facts         // when changed was called last
	released   bool          // since the last renewal
	unanswered int           // renewals without an answer of the worker's controller
}

func newRenewer(w worker, o Options, report func(string, metav1.Condition)) *renewer {
	return &renewer{worker: w, options: o, report: report, woken: make(chan struct{}, 1)}
}

// run renews the Lease until the context ends. The next leader continues.
func (r *renewer) run(ctx context.Context) {
	timer := r.options.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.woken:
		case <-timer.C():
		}
		timer.Reset(r.sync(ctx))
	}
}

// sync does what is due, and returns the time until something is again.
func (r *renewer) sync(ctx context.Context) time.Duration {
	// After this the next request is due.
	ctx, cancel := context.WithTimeout(ctx, r.options.interval())
	defer cancel()
	var err error
	switch view := r.worker.View(); decide(view, r.worker.Mirrors()) {
	case renew:
		err = r.renew(ctx)
	case release:
		err = r.release(ctx, view)
	case wait:
	}
	switch c := failed(err, r.options.Origin.FenceLease()); {
	case c != nil:
		r.report(r.worker.Name(), *c)
	case err != nil && !errors.Is(err, clusters.ErrNotConnected) && ctx.Err() == nil:
		klog.FromContext(ctx).Info("The fence's Lease wasn't written, will try again", "worker", r.worker.Name(), "err", err)
	}
	return pause(r.options.interval(), r.unanswered)
}

func (r *renewer) renew(ctx context.Context) error {
	want := lease(r.options, r.worker.LostTimeout(), r.options.Clock.Now())
	patch, err := renewal(want)
	if err != nil {
		return err
	}
	r.released = false
	is := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	err = r.worker.Client().Patch(ctx, is, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		// The registration creates the Lease, because RBAC can't say which Lease a user may create. A
		// kubeconfig of another kind may allow it.
		is = want
		err = clusters.CreateInSystem(ctx, r.worker.Client(), is)
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s/%s: %w", want.Namespace, want.Name, err)
	}
	if observed, ours := fence.Read(is); ours {
		r.answered(observed)
	}
	return nil
}

func (r *renewer) answered(observed fence.Lease) {
	r.unanswered++
	if observed.After > 0 {
		r.unanswered = 0
	}
	r.report(r.worker.Name(), renewed(observed))
}

// release writes into the Lease, once, that the worker needs no fence any more. The admin deletes
// the Lease with the registration.
func (r *renewer) release(ctx context.Context, view clusters.View) error {
	r.unanswered = 0
	if !r.released {
		l := lease(r.options, 0, r.options.Clock.Now())
		l.Spec.HolderIdentity = nil
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": nil, "renewTime": l.Spec.RenewTime}})
		if err != nil {
			return err
		}
		err = r.worker.Client().Patch(ctx, l, client.RawPatch(types.MergePatchType, patch))
		// The manager that may not write it didn't renew it.
		if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("release Lease %s/%s: %w", l.Namespace, l.Name, err)
		}
		r.released = true
	}
	r.report(r.worker.Name(), released(view))
	return nil
}

// facts are what a renewer reads of a worker, beside its mirrors.
type facts struct {
	state                           clusters.State
	clockRuns, mayWrite, isRemoving bool
	controller                      v1alpha1.JobController
	policy                          v1alpha1.RemovalPolicy
	lostTimeout                     time.Duration
}

// changed makes run sync if the worker has changed in what is read of it: all else changes as often
// as the worker likes. It's called by one goroutine at a time.
func (r *renewer) changed() {
	view := r.worker.View()
	now := facts{
		view.State, !view.Since.IsZero(), view.MayWrite(), view.Removing,
		view.Spec.JobController, view.Spec.RemovalPolicy, r.worker.LostTimeout(),
	}
	if now != r.seen {
		r.seen = now
		r.wake()
	}
}

// wake makes run sync.
func (r *renewer) wake() {
	wake.Signal(r.woken)
}
