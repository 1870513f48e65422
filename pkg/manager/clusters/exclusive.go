package clusters

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/writer"
)

// Term is the time in which this process leads its hub; see package writer.
type Term = writer.Term

// NewTerm makes the Term of a process that may lead the hub.
var NewTerm = writer.NewTerm

// CreateInSystem creates an object in a worker's SystemNamespace, and that namespace if there is
// none.
var CreateInSystem = writer.CreateInSystem

// leaseTimeout is how long the begin of a Term waits for the workers' Leases. Those that take
// longer are used later.
const leaseTimeout = 2 * time.Second

// begin begins the Term, and has the Leases of all connected workers taken, so that those who are
// told of the workers find them in use.
func (r *Registry) begin(ctx context.Context) error {
	term := r.options.Term
	if term == nil {
		return nil
	}
	if err := term.Begin(ctx); err != nil {
		return err
	}
	go term.Run(ctx)
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	for _, w := range r.List() {
		w.wake()
	}
	for _, w := range r.List() {
		if w.View().State != Ready {
			continue
		}
		select {
		case <-w.leaseKnown:
		case <-w.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// keepLease takes or keeps the worker's Lease. Only the supervisor calls it.
func (w *Worker) keepLease(ctx context.Context) writer.Standing {
	if w.link.Open() {
		w.lease.Keep(ctx, writer.Settings{LostTimeout: w.LostTimeout(), TakeOverFrom: w.View().TakeOverFrom})
	} else {
		w.lease.Lost()
	}
	return w.lease.Standing()
}

// releaseLease gives the Lease of a worker that is removed away. Only the supervisor calls it.
func (w *Worker) releaseLease(ctx context.Context) {
	if !w.View().Removing {
		return
	}
	if err := w.lease.Release(ctx); err != nil {
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
		c.Message = "a copy of this hub would write here, too: " + w.Why
	default:
		return nil
	}
	return c
}

// heldElsewhere says what to do about a worker that another hub writes to.
func heldElsewhere(worker, holder string) string {
	return fmt.Sprintf("the manager %s of another hub with the same origin writes to the worker, so this one doesn't. "+
		"If this hub is a copy, leave it so. If it's the only one, put back to an earlier state, it goes on workerLostTimeout after the other one's last sign, or at once by: "+
		"kubectl annotate --overwrite workercluster %s %s=%s", holder, worker, v1alpha1.AnnotationTakeOverFrom, holder)
}

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
