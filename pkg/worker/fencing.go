package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/queue"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// fenced reports whether a Job's Pods must not run. The mark decides, not the fence: a renewed
// Lease doesn't show that the Job is still placed here. The hub confirms that by removing the mark.
// A Job that its hub has released has no origin; it runs whatever its marks.
func fenced(job *batchv1.Job) bool { return v1alpha1.IsFenced(job) && originOf(job) != "" }

// mustNotRun reports whether the Pods of a Job are to be stopped. One that is being deleted needs
// no mark for that: it starts none any more. If its Pods are to be orphans, they run on.
func (r *reconciler) mustNotRun(job *batchv1.Job) bool {
	if job.DeletionTimestamp == nil {
		return fenced(job)
	}
	return !slices.Contains(job.Finalizers, metav1.FinalizerOrphanDependents) && (fenced(job) || r.fence.stops(job))
}

func originOf(job *batchv1.Job) v1alpha1.Origin {
	return v1alpha1.Origin(job.Labels[v1alpha1.LabelOrigin])
}

// markFenced marks a Job whose fence is closed, before any other write: otherwise a new process
// would run the Job again until its own fence closes.
func (s *jobSync) markFenced(ctx context.Context) error {
	if v1alpha1.IsFenced(s.job) || s.job.DeletionTimestamp != nil || !s.fence.stops(s.job) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         s.job.UID,
		"annotations": map[string]string{v1alpha1.AnnotationFenced: s.clock.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	next := s.job.DeepCopy()
	if err := s.client.Patch(ctx, next, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("mark the Job as fenced: %w", err)
	}
	s.fence.countMarked(originOf(next))
	s.job, s.known.written = next, next
	return nil
}

// isFenceable reports whether a Job is a mirror whose hub keeps a Lease here. In drop-in mode, this
// controller runs mirrors, too, whose hubs know of no fence.
func isFenceable(job *batchv1.Job) bool {
	return originOf(job) != "" && ptr.Deref(job.Spec.ManagedBy, "") == v1alpha1.ManagedByWorker
}

// unfinishedMirrors are the unfinished Jobs of all hubs, as the cache has them.
func unfinishedMirrors(ctx context.Context, jobs client.Reader) (unfinished []*batchv1.Job, err error) {
	var list batchv1.JobList
	if err := jobs.List(ctx, &list, client.HasLabels{v1alpha1.LabelOrigin}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Jobs of all hubs: %w", err)
	}
	for i := range list.Items {
		if plan.Finished(&list.Items[i]) == nil {
			unfinished = append(unfinished, &list.Items[i])
		}
	}
	return unfinished, nil
}

// fencedOrigins returns the origins that have unfinished Jobs.
func fencedOrigins(ctx context.Context, jobs client.Reader) (sets.Set[v1alpha1.Origin], error) {
	unfinished, err := unfinishedMirrors(ctx, jobs)
	origins := sets.New[v1alpha1.Origin]()
	for _, job := range unfinished {
		if isFenceable(job) {
			origins.Insert(originOf(job))
		}
	}
	return origins, err
}

// fencedFirst is the priority of Jobs whose fence has closed: their hub moves them soon, and the
// syncs of others may take long.
const fencedFirst = 1

// enqueueFenced enqueues the Jobs of these origins, so that each is marked.
func (o Options) enqueueFenced(ctx context.Context, jobs client.Reader, origins sets.Set[v1alpha1.Origin], q queue.Queue) error {
	unfinished, err := unfinishedMirrors(ctx, jobs)
	for _, job := range unfinished {
		if origins.Has(originOf(job)) && o.manages(job) {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(fencedFirst)}, requestFor(job))
		}
	}
	return err
}
