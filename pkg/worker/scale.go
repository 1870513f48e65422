package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/text"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

const (
	// maxPodBytes bounds what the new Pods of all syncs take.
	maxPodBytes = 32 << 20
	// decodedFactor is how much more a Pod may take than in protobuf, and treeFactor how much more
	// than that with its recent fields, in maps. Both are of templates of many small values.
	decodedFactor = 16
	treeFactor    = 8
)

// createPods sends the Pods in batches of 1, 2, 4 … and stops after a batch with a failure, so that
// few requests meet a full quota.
func (s *jobSync) createPods(ctx context.Context, pods []func() *corev1.Pod, why plan.CreateReason) (created int, err error) {
	if len(pods) == 0 {
		return 0, nil
	}
	template, err := s.wholeTemplate(ctx)
	if errors.Is(err, errLeft) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	atATime := s.options.podsAtATime(s.job, template != nil)
	for size := 1; len(pods) > 0; size *= 2 {
		if s.isOver() {
			s.wake = wake.AtOnce
			return created, nil
		}
		batch := pods[:min(size, len(pods))]
		pods = pods[len(batch):]
		errs := parallel(atATime, len(batch), func(i int) error { return s.createPod(ctx, batch[i](), template) })
		failed := len(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil }))
		created += len(batch) - failed
		s.metrics.podsCreated(why, len(batch)-failed, failed)
		if err := cmp.Or(errs...); err != nil {
			return created, ignoreNamespaceTerminating(err)
		}
	}
	return created, nil
}

// podsAtATime is how many Pods of a Job one sync makes and sends at a time: of a large template
// few, so that those of all syncs take no more than maxPodBytes, or are one of each.
func (o Options) podsAtATime(job *batchv1.Job, withRecentFields bool) int {
	size := job.Spec.Template.Size() * decodedFactor
	if withRecentFields {
		size *= treeFactor
	}
	return max(1, min(maxParallel, maxPodBytes/o.Concurrency/max(1, size)))
}

func (s *jobSync) createPod(ctx context.Context, p *corev1.Pod, template *wholeTemplate) error {
	create := func() error { return s.client.Create(ctx, p) }
	if template != nil {
		create = func() error { return template.create(ctx, s.client, p) }
	}
	if err := create(); err != nil {
		if !answered(err) {
			s.noteUnanswered(p)
		}
		if ignoreNamespaceTerminating(err) != nil {
			s.events.Eventf(s.job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", short{err})
		}
		return notCreated{fmt.Errorf("create Pod: %w", err)}
	}
	s.noteCreated(s.known, p)
	s.events.Eventf(s.job, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", p.Name)
	return nil
}

// short is an error whose text is cut: that of Pod Security names all containers of a template, and
// a webhook's is as long as it likes.
type short struct{ error }

func (e short) Error() string { return text.Clean(e.error.Error(), text.MaxMessage) }

func (e short) Unwrap() error { return e.error }

// notCreated is the refusal of a new Pod. A conflict, say with a quota, or something that isn't
// found, say its ServiceAccount, doesn't mean that the cache is behind.
type notCreated struct{ error }

func (e notCreated) Unwrap() error { return e.error }

// ignoreNamespaceTerminating drops the refusal of a namespace that is being deleted: a later
// attempt would be refused, too.
func ignoreNamespaceTerminating(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// isOver reports whether the next sync is to create or delete what's left.
func (s *jobSync) isOver() bool { return s.clock.Now().After(s.until) }

var errLeft = errors.New("it is left to the next sync")

// deletePods deletes those that it has time for. What was refused before comes last: it may take
// long again.
func (s *jobSync) deletePods(ctx context.Context, deletions []plan.Deletion) (sets.Set[types.UID], error) {
	rank := func(d plan.Deletion) int {
		if s.known.refused.Has(d.Pod.UID) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(deletions, func(a, b plan.Deletion) int { return cmp.Compare(rank(a), rank(b)) })
	errs := parallel(maxParallel, len(deletions), func(i int) error {
		if s.isOver() {
			return errLeft
		}
		return s.deletePod(ctx, deletions[i])
	})
	deleted, failed := make(sets.Set[types.UID], len(deletions)), error(nil)
	for i, d := range deletions {
		switch err := errs[i]; {
		case err == nil:
			deleted.Insert(d.Pod.UID)
		case errors.Is(err, errLeft):
			s.wake = wake.AtOnce
		default:
			failed = cmp.Or(failed, err)
		}
	}
	return deleted, failed
}

func (s *jobSync) deletePod(ctx context.Context, d plan.Deletion) error {
	if d.Untrack {
		if err := s.untrackUnended(ctx, d.Pod); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizer of Pod %s: %w", d.Pod.Name, err)
		}
		s.known.note(s.known.untracked, d.Pod.UID)
	}
	err := s.pods.delete(ctx, d.Pod)
	switch {
	case err == nil:
		s.events.Eventf(s.job, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", d.Pod.Name)
	case client.IgnoreNotFound(err) != nil:
		s.events.Eventf(s.job, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", short{err})
		s.known.note(s.known.refused, d.Pod.UID)
		return fmt.Errorf("delete Pod %s: %w", d.Pod.Name, err)
	}
	s.known.note(s.known.deleted, d.Pod.UID)
	return nil
}

// untrackUnended removes the finalizer of a Pod that isn't to be counted. If the Pod has changed
// since it was read, it's read again: one that has ended by now must be counted, and is left to the
// next sync.
func (s *jobSync) untrackUnended(ctx context.Context, p *corev1.Pod) error {
	err := s.pods.untrack(ctx, p, p.ResourceVersion)
	if !apierrors.IsConflict(err) {
		return err
	}
	live, failed := s.livePod(ctx, client.ObjectKeyFromObject(p))
	if failed != nil {
		return failed
	}
	if live.UID != p.UID || plan.Ended(live) {
		return err
	}
	return s.pods.untrack(ctx, p, live.ResourceVersion)
}

// livePod reads a Pod from the API server. Large ones are read one at a time.
func (r *reconciler) livePod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	err := r.live.Get(pages.Within(ctx, maxAnswer), key, p)
	if pages.IsTooLarge(err) {
		r.largeReads.Lock()
		defer r.largeReads.Unlock()
		err = r.live.Get(ctx, key, p)
	}
	return p, err
}
