package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// jobSync is one sync of one Job. The order of its writes is what keeps Pods from being lost or
// counted twice, see package plan.
type jobSync struct {
	*reconciler
	job    *batchv1.Job // as of the last write
	known  *pending
	action plan.Action
	wake   time.Duration
}

func (s *jobSync) run(ctx context.Context) error {
	if err := s.markFenced(ctx); err != nil {
		return err
	}
	s.known.batch.open()
	snapshot, err := s.gather(ctx, s.job, s.known)
	if err != nil {
		return err
	}
	p := plan.Compute(snapshot, s.options.planOptions())
	s.action, s.wake = p.Action, p.Wake
	outcome, podsErr := s.scale(ctx, p)

	// What couldn't be done about Pods is no reason to keep the rest of the status from the user.
	account := p.Account(outcome)
	if err := s.write(ctx, account.Changed, account.Status, account.Events, account.Tally); err != nil {
		return errors.Join(podsErr, err)
	}
	s.known.backoff = &p.Backoff
	s.metrics.policyApplied(account.Actions)
	s.wakeFor(p, outcome, account)
	released, releaseErr := s.release(ctx, account.Release)

	settled := account.Settle(released)
	if settled.CanWait() {
		s.wake = wake.Soonest(s.wake, wake.In(s.options.SyncBatchPeriod))
		return errors.Join(podsErr, releaseErr)
	}
	if err := s.write(ctx, settled.Changed, settled.Status, settled.Events, settled.Tally); err != nil {
		return errors.Join(podsErr, releaseErr, err)
	}
	if settled.Finished != nil {
		s.metrics.jobFinished(s.job, settled.Finished)
	}
	return errors.Join(podsErr, releaseErr)
}

// wakeFor has the Job looked at again for what no event would tell of.
func (s *jobSync) wakeFor(p *plan.Plan, done plan.Outcome, account *plan.Account) {
	// What was refused isn't more to do at once: it would be refused again.
	all := done.Created == len(p.Create) && done.Deleted.Len() == len(p.Delete)
	if account.More() || p.More && all {
		s.wake = wake.Soonest(s.wake, wake.AtOnce)
	}
	if s.known.batch.expect(account.Status.Active + ptr.Deref(account.Status.Terminating, 0)) {
		s.wake = wake.Soonest(s.wake, s.options.shortWait())
	}
	if len(s.known.created) > 0 {
		// Should the cache never show them, no event will tell.
		s.wake = wake.Soonest(s.wake, cacheLag)
	}
}

// scale deletes and creates Pods as planned.
func (s *jobSync) scale(ctx context.Context, p *plan.Plan) (plan.Outcome, error) {
	deleted, err := s.deletePods(ctx, p.Delete)
	created, createErr := s.createPods(ctx, p.Create, p.CreateReason)
	return plan.Outcome{Created: created, Deleted: deleted}, errors.Join(err, createErr)
}

// release removes the tracking finalizer from Pods whose end is on record.
func (s *jobSync) release(ctx context.Context, pods []*corev1.Pod) (sets.Set[types.UID], error) {
	errs := parallel(len(pods), func(i int) error {
		if err := s.pods.untrack(ctx, pods[i], ""); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizer of Pod %s: %w", pods[i].Name, err)
		}
		s.known.noteReleased(pods[i].UID)
		return nil
	})
	released := make(sets.Set[types.UID], len(pods))
	for i, p := range pods {
		if errs[i] == nil {
			released.Insert(p.UID)
		}
	}
	return released, firstOf(errs)
}

// write makes the API server's status this one. It fails if the Job has changed since it was read:
// then nothing of the plan may be enforced.
func (s *jobSync) write(ctx context.Context, changed bool, status batchv1.JobStatus, events []plan.Event, tally plan.Tally) error {
	if changed {
		next := s.job.DeepCopy()
		next.Status = status
		if err := s.client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		s.job, s.known.written = next, next
	}
	for _, e := range events {
		s.events.Event(s.job, e.Type, e.Reason, e.Message)
	}
	s.metrics.counted(s.job, tally)
	return nil
}

// maxParallel bounds the requests of one sync that are under way at a time; the client's own
// limiter decides how fast they go.
const maxParallel = 100

// parallel calls do for 0 to n-1, and returns their errors in that order.
func parallel(n int, do func(int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	return errs
}

// firstOf keeps a thousand alike failures from filling the log.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func failures(errs []error) int {
	n := 0
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}
