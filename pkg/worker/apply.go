package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// jobSync is one sync of one Job. The order of its writes keeps Pods from being lost or counted
// twice, see package plan.
type jobSync struct {
	*reconciler
	job    *batchv1.Job // as of the last write
	known  *pending
	action plan.Action
	// due is when the plan has something to do by the clock, and wake the next sync if this one
	// succeeds; see package wake.
	due, wake time.Duration
	// until is when the sync leaves further Pods to the next one.
	until time.Time
}

func (s *jobSync) run(ctx context.Context) error {
	if err := s.markFenced(ctx); err != nil {
		return err
	}
	s.known.batch.open()
	snapshot, err := s.gather(ctx, s.job, s.known, s.until)
	if err != nil {
		return err
	}
	p := plan.Compute(snapshot, s.options.Options)
	s.action, s.due, s.wake = p.Action, p.Wake, p.Wake
	s.reportShard(p.ShardProblem())
	result, podsErr := s.scale(ctx, p)

	// The status is written even if requests about Pods have failed.
	recorded := p.Record(result)
	if err := s.write(ctx, recorded.StatusWrite); err != nil {
		return errors.Join(podsErr, err)
	}
	s.known.backoff = &p.Backoff
	s.metrics.policyApplied(recorded.Actions)
	s.requeueFor(p, result, recorded)
	untracked, untrackErr := s.untrack(ctx, recorded.Untrack)

	settled := recorded.Settle(untracked)
	if settled.CanWait() {
		s.wake = wake.Soonest(s.wake, wake.In(s.options.SyncBatchPeriod))
		return errors.Join(podsErr, untrackErr)
	}
	if err := s.write(ctx, settled.StatusWrite); err != nil {
		return errors.Join(podsErr, untrackErr, err)
	}
	if settled.Finished != nil {
		s.metrics.jobFinished(s.job, settled.Finished)
	}
	return errors.Join(podsErr, untrackErr)
}

// requeueFor has the Job synced again for what brings no event.
func (s *jobSync) requeueFor(p *plan.Plan, result plan.Result, recorded *plan.Record) {
	// What was refused now would be refused again at once.
	all := result.Created == len(p.Create) && result.Deleted.Len() == len(p.Delete)
	if recorded.More || p.More && all {
		s.wake = wake.Soonest(s.wake, wake.AtOnce)
	}
	if s.known.batch.expect(recorded.Status.Active + ptr.Deref(recorded.Status.Terminating, 0)) {
		s.wake = wake.Soonest(s.wake, s.options.shortWait())
	}
	s.wake = wake.Soonest(s.wake, s.known.shard.expireIn(s.clock.Now()))
	if len(s.known.created) > 0 {
		// If the cache never shows them, there's no event either.
		s.wake = wake.Soonest(s.wake, cacheLag)
	}
}

// scale deletes and creates Pods as planned.
func (s *jobSync) scale(ctx context.Context, p *plan.Plan) (plan.Result, error) {
	deleted, err := s.deletePods(ctx, p.Delete)
	if groupErr := s.ensurePodGroup(ctx, p.Create); groupErr != nil {
		return plan.Result{Deleted: deleted}, errors.Join(err, ignoreNamespaceTerminating(groupErr))
	}
	created, createErr := s.createPods(ctx, p.Create, p.CreateReason)
	return plan.Result{Created: created, Deleted: deleted}, errors.Join(err, createErr)
}

// untrack removes the tracking finalizer from Pods whose end the status has.
func (s *jobSync) untrack(ctx context.Context, pods []*corev1.Pod) (sets.Set[types.UID], error) {
	errs := parallel(maxParallel, len(pods), func(i int) error {
		if err := s.pods.untrack(ctx, pods[i], ""); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizer of Pod %s: %w", pods[i].Name, err)
		}
		s.known.note(s.known.untracked, pods[i].UID)
		return nil
	})
	untracked := make(sets.Set[types.UID], len(pods))
	for i, p := range pods {
		if errs[i] == nil {
			untracked.Insert(p.UID)
		}
	}
	return untracked, cmp.Or(errs...)
}

// write sends a status, its events and its metrics. It fails if the Job has changed since it was
// read: then nothing of the plan may be enforced.
func (s *jobSync) write(ctx context.Context, w plan.StatusWrite) error {
	if w.Changed {
		next := s.job.DeepCopy()
		next.Status = w.Status
		if w.Observed != nil {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.AnnotationIndexesObserved, *w.Observed)
		}
		if err := s.client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		s.job, s.known.written = next, next
		if w.Observed != nil && next.Annotations[v1alpha1.AnnotationIndexesObserved] != *w.Observed {
			return fmt.Errorf("write status: the API server has dropped annotation %s: "+
				"no admission plugin or webhook may change it", v1alpha1.AnnotationIndexesObserved)
		}
	}
	for _, e := range w.Events {
		s.events.Event(s.job, e.Type, e.Reason, e.Message)
	}
	s.metrics.counted(s.job, w.Tally)
	return nil
}

// maxParallel bounds the requests of one sync that are under way at a time; the client's own
// limiter decides how fast they go.
const maxParallel = 100

// parallel calls do for 0 to n-1, so many at a time, and returns their errors in that order.
func parallel(atATime, n int, do func(int) error) []error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(context.Background(), atATime, n, func(i int) { errs[i] = do(i) })
	return errs
}
