package pods

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// seen is a snapshot, and what apply does with it.
type seen struct {
	snapshot
	name types.NamespacedName
	in   *clusters.Worker
	of   *batchv1.Job // as the cache has it; nil: there is none
	// hasTurn: it may take much memory now.
	hasTurn bool
}

// gather reads all that is known of a Pod; nil: there is nothing to decide, or not yet.
func (r *reconciler) gather(ctx context.Context, name types.NamespacedName) (s *seen, again time.Duration, err error) {
	s = &seen{name: name, snapshot: snapshot{now: r.clock.Now(), shown: r.Shown(name.Namespace), leaving: r.isLeaving(name.Namespace), shadow: r.shadows.get(name)}}
	if s.shadow == nil && !s.shown {
		return nil, 0, nil
	}
	candidates := r.registry.List()
	if s.shadow != nil {
		candidates = nil
		if w, is := r.registry.Get(s.shadow.worker.Value()); is {
			candidates = []*clusters.Worker{w}
		}
	}
	for _, w := range candidates {
		pod, has := w.Reports().Get(name)
		if !has && s.shadow == nil {
			continue
		}
		if !r.shadows.synced(w.Name()) {
			if r.nodes.has(w.Name()) {
				again = lookAgain
			}
			return nil, again, nil
		}
		s.in, s.pod, s.worker, s.known, s.usable = w, pod, w.Name(), w.Reports().Known(), w.Synced()
		jobName := ""
		if pod != nil {
			jobName = pod.Job
		} else if s.shadow.isShadow() {
			jobName = s.shadow.jobName
		}
		if err := s.findJob(ctx, r, jobName); err != nil {
			return nil, 0, err
		}
		if s.job != nil && s.job.proven {
			break
		}
	}
	return s, 0, nil
}

// findJob finds the Job on the hub, and what it has to do with the worker's Pod. A Job that nothing
// depends on isn't unpacked.
func (s *seen) findJob(ctx context.Context, r *reconciler, name string) error {
	s.job, s.of = nil, nil
	if name == "" || s.needsNoJob() {
		return nil
	}
	key, job := types.NamespacedName{Namespace: s.name.Namespace, Name: name}, &batchv1.Job{}
	if err := r.cache.Get(ctx, key, job, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("job %s: %w", key, err)
	}
	if !mirror.Managed(job) {
		return nil
	}
	s.of, s.job = job, &hubJob{uid: job.UID, deleting: job.DeletionTimestamp != nil}
	if s.in == nil {
		return nil
	}
	s.job.placed = shards.IsOn(job, s.worker)
	if s.pod == nil {
		return nil
	}
	found, is := s.in.Mirror(key)
	s.job.proven = is && found.UID == s.pod.Mirror && mirror.Owns(r.options.Origin, job.UID, found) == mirror.Ours &&
		r.shadows.of(job, s.worker) < mostOf(job)
	return nil
}

// mostOf is how many shadows a Job may have in each worker, which can make any number of Pods. A
// Job's own failures and restarts stay below it.
func mostOf(job *batchv1.Job) int {
	return 100 + 10*int(max(ptr.Deref(job.Spec.Completions, 1), ptr.Deref(job.Spec.Parallelism, 1)))
}

// refill reads a Pod from the worker of which there is no report yet: its namespace wasn't shown
// when it last changed.
func (r *reconciler) refill(ctx context.Context, s *seen) error {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	ctx, release := s.in.Hold(ctx)
	defer release()
	pod := &corev1.Pod{}
	if err := s.in.Client().Get(ctx, s.name, pod); err != nil {
		return fmt.Errorf("pod %s of worker %s: %w", s.name, s.worker, err)
	}
	s.in.Reports().Refill(pod)
	return nil
}

// needsRefill reports whether it has to.
func (s *seen) needsRefill() bool {
	return s.shown && s.pod != nil && s.pod.Digest == "" && s.job != nil && s.job.proven && s.usable
}

// workerTimeout is for a request to a worker.
const workerTimeout = 5 * time.Second
