package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
)

// explainTimeout bounds what one explanation takes of the leader, from its turn on.
const explainTimeout = 5 * time.Second

// Explain says in which workers a Job could run now, and why not in the others. Only the leader
// can: it knows which Jobs are about to be placed. It writes nothing, and holds up no placement.
// One explanation is made at a time. Its errors are API statuses.
func (r *Reconciler) Explain(ctx context.Context, key types.NamespacedName) (*v1alpha1.PlacementExplanation, error) {
	select {
	case r.explaining <- struct{}{}:
	case <-ctx.Done():
		return nil, errBusy
	}
	defer func() { <-r.explaining }()
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	if !r.startup.over() {
		return nil, apierrors.NewServiceUnavailable("the manager has just started, and is connecting to the workers: try again")
	}
	a := r.whole.open(key)
	defer a.release()
	a.isOnce = true
	weight := int64(wholeBytes)
	if cached, err := r.gatherer.cachedJob(ctx, key); err == nil && cached != nil {
		weight = r.whole.weight(cached.UID)
	}
	whole, err := a.readWeighed(ctx, weight)
	switch {
	case errors.Is(err, errNoMemory):
		return nil, errBusy
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil: // whatever the hub refuses to the manager, it's no refusal of the user
		return nil, apierrors.NewInternalError(fmt.Errorf("the hub doesn't answer for Job %q: %w", key, err))
	}
	request, subject, err := r.questionOf(ctx, a, whole)
	if err != nil {
		return nil, err
	}
	request.Expired = func() bool { return ctx.Err() != nil }
	e := placement.Explain(request, subject, r.line.Candidates(ctx, request.Job))
	if ctx.Err() != nil {
		return nil, errBusy
	}
	e.Waiting, e.Line = r.line.Explain(key)
	e.Time = metav1.NewTime(r.clock.Now())
	return &e, nil
}

// errBusy: the leader can't answer in time.
var errBusy = apierrors.NewTimeoutError("the manager is busy with other Jobs or explanations, or this one takes too long: try again later", 0)

// questionOf is what a placement of the Job would ask for.
func (r *Reconciler) questionOf(ctx context.Context, a *allowance, whole *mirror.Whole) (placement.Request, placement.Subject, error) {
	job := whole.Job
	refuse := func(format string, args ...any) (placement.Request, placement.Subject, error) {
		return placement.Request{}, placement.Subject{}, apierrors.NewBadRequest(fmt.Sprintf(format, args...))
	}
	limit, err := shards.MaxClusters(job)
	placed := shards.WorkersOf(job)
	switch {
	case !mirror.Managed(job):
		return refuse("Job %q isn't Jobferry's: its spec.managedBy isn't %s", job.Name, v1alpha1.ManagedByDispatcher)
	case mirror.Finished(job):
		return refuse("Job %q has ended: it needs no worker any more", job.Name)
	case err != nil && len(placed) == 0:
		return refuse("Job %q: %v", job.Name, err)
	}
	s := &dispatch.Snapshot{Now: r.clock.Now(), Job: job, Key: keyOf(job), Admission: r.queues.Admission(ctx, job)}
	if rec := r.store.of(keyOf(job), idOf(job)); rec != nil {
		s.PassedOver = rec.read(r.clock.Now()).passedOver
	}
	request, err := r.requestFor(ctx, s)
	if err != nil {
		return refuse("Job %q: %v", job.Name, err)
	}
	request.Recent = whole.Recent.Paths()
	if err := r.askedOfGroup(ctx, a, &request); err != nil {
		return refuse("Job %q: %v", job.Name, err)
	}
	return request, placement.Subject{Placed: placed, Divisible: limit > 1, Suspended: !s.Admission.WantsCapacity(job)}, nil
}

// requestFor is what the Job of a snapshot asks of a worker, but for its recent fields.
func (r *Reconciler) requestFor(ctx context.Context, s *dispatch.Snapshot) (placement.Request, error) {
	if err := r.store.groups.kinds.Check(s.Job); err != nil {
		return placement.Request{}, err
	}
	selector, err := preference.ParseSelector(s.Job.Annotations)
	if err != nil {
		return placement.Request{}, err
	}
	preferred, err := preference.Parse(s.Job.Annotations)
	if err != nil {
		return placement.Request{}, err
	}
	namespace, passedOver := s.Key.Namespace, map[string]string{}
	maps.Copy(passedOver, s.PassedOver)
	return placement.Request{
		Namespace: r.hubNamespaces.labels(ctx, namespace), NamespaceClosed: r.hubNamespaces.closed(ctx, namespace) != "",
		Preference: preferred, Since: waitsSince(s), Now: s.Now,
		Job: s.Admission.AsResumed(s.Job), Selector: selector, Among: s.Admission.Workers, PassedOver: passedOver,
	}, nil
}

// waitsSince is when a Job began to wait for a worker: when it was created, or resumed, if it has
// had none since. A Job of Kueue has waited there: all steps of its preference are open.
func waitsSince(s *dispatch.Snapshot) time.Time {
	if s.Admission.Queued {
		return time.Time{}
	}
	since := s.Job.CreationTimestamp.Time
	if len(shards.WorkersOf(s.Job)) > 0 {
		return since // what follows may be of a worker
	}
	for _, c := range s.Job.Status.Conditions {
		if c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionFalse && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}
