package clusters

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/writer"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Term is the time in which this process leads its hub; see package writer.
type Term = writer.Term

// NewTerm makes the Term of a process that may lead the hub.
var NewTerm = writer.NewTerm

// CreateInSystem creates an object in a worker's SystemNamespace, and that namespace if there is
// none.
var CreateInSystem = writer.CreateInSystem

// claimTimeout is how long the begin of a Term waits for the workers' Leases. Those that take
// longer are used later.
const claimTimeout = 2 * time.Second

// begin begins the Term, and has the Leases of all connected workers taken, so that those who are
// told of the workers find them in use.
func (r *Registry) begin(ctx context.Context) error {
	term := r.options.Term
	if term == nil {
		return nil
	}
	if err := term.Begin(ctx); apierrors.IsForbidden(err) {
		log.FromContext(ctx).Error(err, "No worker is guarded against a copy of this hub: upgrade the chart, whose role allows it")
		term = nil
	} else if err != nil {
		return err
	} else {
		go term.Run(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	r.term.Store(&begun{term})
	for _, w := range r.List() {
		w.wake()
	}
	for _, w := range r.List() {
		if w.View().State != Ready {
			continue
		}
		select {
		case <-w.claimed:
		case <-w.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// begun is the Term of a replica that leads; nil: it can't be written.
type begun struct{ *Term }

// claim takes or keeps the worker's Lease. Only the supervisor calls it.
func (w *Worker) claim(ctx context.Context) writer.Standing {
	begun := w.term.Load()
	switch {
	case w.options.Term == nil:
		return writer.Standing{}
	case begun == nil: // a standby writes nothing
		return writer.Standing{State: writer.Unknown}
	case begun.Term == nil:
		return writer.Standing{State: writer.Unguarded, Why: "the manager may not write the Lease " + v1alpha1.HubWriterLease + " in its own namespace"}
	case w.claims == nil:
		w.claims = writer.NewClaim(begun.Term, w.link.Client(), writer.Options{
			Origin: w.options.Origin, Timeout: w.options.ProbeTimeout, Retry: w.options.RetryDelay,
		})
	}
	if !w.link.Open() {
		w.claims.Lost()
		return writer.Standing{State: writer.Unknown}
	}
	return w.claims.Keep(ctx, writer.Settings{LostTimeout: w.LostTimeout(), TakeOverFrom: w.View().TakeOverFrom})
}

// release gives the Lease of a worker that is removed away. Only the supervisor calls it.
func (w *Worker) release(ctx context.Context) {
	if w.claims == nil || !w.View().Removing {
		return
	}
	if err := w.claims.Release(ctx); err != nil {
		log.FromContext(ctx).Info("The Lease in a worker that is removed stays this hub's", "worker", w.name, "err", err)
	}
}

// exclusiveCondition says whether no other manager of this origin writes to the worker; nil: as
// before.
func exclusiveCondition(s gathered) *metav1.Condition {
	c := &metav1.Condition{Type: v1alpha1.ConditionExclusive, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(s.now)}
	switch w := s.worker.Writer; w.State {
	case writer.Ours:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonLeaseHeld
		c.Message = "no other manager of this origin writes to the worker"
		if w.Why != "" {
			c.Message += "; the Lease isn't renewed: " + w.Why
		}
	case writer.Theirs:
		c.Reason, c.Message = v1alpha1.ReasonHeldElsewhere, heldElsewhere(s.name, w.Holder)
	case writer.Unguarded:
		c.Reason = v1alpha1.ReasonUnguarded
		c.Message = "a copy of this hub would write here, too: " + w.Why + "; run kubectl jobferry register again"
	default:
		return nil
	}
	return c
}

// heldElsewhere says what to do about a worker that another hub writes to.
func heldElsewhere(worker, holder string) string {
	return fmt.Sprintf("the manager %s of another hub with the same origin writes to the worker, so this one doesn't. "+
		"If this hub is a copy, leave it so. If it's the only one, put back to an earlier state, it goes on workerLostTimeout after the other one's last sign, or at once by: "+
		"kubectl annotate --overwrite workercluster %s %s=%s", text.Clean(holder, maxHolder), worker, v1alpha1.AnnotationTakeOverFrom, text.Clean(holder, maxHolder))
}

// maxHolder bounds what is shown of a worker's text.
const maxHolder = 253

// exclusiveEvents report a worker that another hub writes to, and one that it doesn't any more.
func exclusiveEvents(s gathered, next v1alpha1.WorkerClusterStatus) []event {
	before := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionExclusive)
	after := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionExclusive)
	was := before != nil && before.Reason == v1alpha1.ReasonHeldElsewhere
	is := after != nil && after.Reason == v1alpha1.ReasonHeldElsewhere
	switch {
	case is && !was:
		return []event{{kind: corev1.EventTypeWarning, reason: after.Reason, action: "Connect", message: after.Message}}
	case was && !is:
		return []event{{kind: corev1.EventTypeNormal, reason: after.Reason, action: "Connect", message: after.Message}}
	default:
		return nil
	}
}

// guarded is a client that writes only while this process may.
type guarded struct {
	client.Client
	worker *Worker
}

func (g guarded) refusal() error {
	if !g.worker.View().MayWrite() {
		return fmt.Errorf("worker %s: another manager may write there: %w", g.worker.name, ErrNotConnected)
	}
	return nil
}

func (g guarded) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := g.refusal(); err != nil {
		return err
	}
	return g.Client.Create(ctx, object, options...)
}

func (g guarded) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if err := g.refusal(); err != nil {
		return err
	}
	return g.Client.Update(ctx, object, options...)
}

func (g guarded) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := g.refusal(); err != nil {
		return err
	}
	return g.Client.Patch(ctx, object, patch, options...)
}

func (g guarded) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := g.refusal(); err != nil {
		return err
	}
	return g.Client.Delete(ctx, object, options...)
}

func (g guarded) DeleteAllOf(ctx context.Context, object client.Object, options ...client.DeleteAllOfOption) error {
	if err := g.refusal(); err != nil {
		return err
	}
	return g.Client.DeleteAllOf(ctx, object, options...)
}

func (g guarded) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if err := g.refusal(); err != nil {
		return err
	}
	return g.Client.Apply(ctx, object, options...)
}

func (g guarded) Status() client.SubResourceWriter { return g.SubResource("status") }

func (g guarded) SubResource(name string) client.SubResourceClient {
	return guardedPart{g.Client.SubResource(name), g}
}

// guardedPart is guarded for a subresource.
type guardedPart struct {
	client.SubResourceClient
	guarded guarded
}

func (p guardedPart) Create(ctx context.Context, object, part client.Object, options ...client.SubResourceCreateOption) error {
	if err := p.guarded.refusal(); err != nil {
		return err
	}
	return p.SubResourceClient.Create(ctx, object, part, options...)
}

func (p guardedPart) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	if err := p.guarded.refusal(); err != nil {
		return err
	}
	return p.SubResourceClient.Update(ctx, object, options...)
}

func (p guardedPart) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := p.guarded.refusal(); err != nil {
		return err
	}
	return p.SubResourceClient.Patch(ctx, object, patch, options...)
}

func (p guardedPart) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	if err := p.guarded.refusal(); err != nil {
		return err
	}
	return p.SubResourceClient.Apply(ctx, object, options...)
}
