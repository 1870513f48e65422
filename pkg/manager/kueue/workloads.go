package kueue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobferry/jobferry/pkg/util/text"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/flapping"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// workloadReconciler writes the state of Jobferry's checks of Workloads.
type workloadReconciler struct {
	*session
	queue atomic.Pointer[queue]
	// written has when a state of a check was written, for messagePace.
	written *expiring.Expiring
	// looked has, by namespace, until when the Jobs of JobSets that were looked at count, and pacing
	// guards its changes.
	looked   *expiring.Expiring
	pacing   sync.Mutex
	changes  groupChanges
	flapping *flapping.Pace
}

// messagePace is the least time between two writes of a check's state of which only the message
// differs: that has texts of workers, which change as their API servers please.
const messagePace = 30 * time.Second

// writtenKey is a state of a check of a Workload.
type writtenKey struct {
	workload types.UID
	check    kueue.AdmissionCheckReference
	state    kueue.CheckState
}

// enqueueWorkloadOf has the Workload of a Job reconciled.
func (r *workloadReconciler) enqueueWorkloadOf(job types.NamespacedName) {
	q := r.queue.Load()
	if q == nil {
		return // the controller starts later, with all Workloads
	}
	ctx := context.Background()
	var cached batchv1.Job
	if err := r.hub.Get(ctx, job, &cached); err != nil {
		return
	}
	for _, request := range r.workloadRequests(ctx, &cached) {
		(*q).Add(request)
	}
}

// Reconcile implements reconcile.Reconciler for Workloads.
func (r *workloadReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := r.objects.Get(ctx, request.NamespacedName, &w, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !holdsQuota(&w) {
		return ctrl.Result{}, nil // it's Kueue's turn
	}
	if wait := r.untilPace(&w); wait > 0 {
		return ctrl.Result{RequeueAfter: wake.In(wait)}, nil
	}
	var result ctrl.Result
	for _, state := range w.Status.AdmissionChecks {
		c, ours := r.check(ctx, string(state.Name))
		if !ours || isFinal(state.State) {
			continue
		}
		all, err := r.gather(ctx, &w, state, c)
		if err != nil {
			return ctrl.Result{}, err
		}
		if of, _ := ownerOf(&w); of.group.JobSet {
			r.pace(w.Namespace, len(all.jobs))
		}
		p := all.decide()
		changed, later, err := r.apply(ctx, all.checkSnapshot, p)
		result.RequeueAfter = wake.Soonest(result.RequeueAfter, p.requeueAfter, later)
		if err != nil {
			return afterWrite(err)
		}
		if changed {
			return result, nil // the watch enqueues the Workload again, for further checks
		}
	}
	return result, nil
}

// jobPace is the time for each Job of the JobSets whose Workloads are looked at in a namespace:
// each is unpacked, in up to 0.3 ms. jobsAhead are looked at at once, and pause is the least time
// that the Workloads wait which come then: there may be very many.
const (
	jobPace   = time.Millisecond
	jobsAhead = 1000
	pause     = time.Second
)

// pace counts the Jobs of a Workload that is looked at. A tenant may have very many Workloads that
// all stand for one JobSet: he waits for himself.
func (r *workloadReconciler) pace(namespace string, jobs int) {
	r.pacing.Lock()
	defer r.pacing.Unlock()
	now := time.Now()
	until := now.Add(time.Duration(jobs) * jobPace)
	if at, ok := r.looked.Get(namespace); ok {
		until = until.Add(max(0, at.(time.Time).Sub(now))) //nolint:forcetypeassert // see below
	}
	r.looked.Set(namespace, until, until.Sub(now))
}

// untilPace is how long a JobSet's Workload waits for its look; zero: it doesn't.
func (r *workloadReconciler) untilPace(w *kueue.Workload) time.Duration {
	at, ok := r.looked.Get(w.Namespace)
	if of, is := ownerOf(w); !ok || !is || !of.group.JobSet {
		return 0
	}
	if wait := time.Until(at.(time.Time)) - jobsAhead*jobPace; wait > 0 { //nolint:forcetypeassert // see pace
		return max(wait, pause)
	}
	return 0
}

// gather makes the snapshot of a check of a Workload, and of each of its Jobs.
func (r *workloadReconciler) gather(ctx context.Context, w *kueue.Workload, state kueue.AdmissionCheckState, c check) (*workloadSnapshot, error) {
	all := &workloadSnapshot{checkSnapshot: &checkSnapshot{now: time.Now(), workload: w, state: state, check: c, options: r.options}}
	jobs, err := r.jobsOf(w)
	if all.isForeign = errors.Is(err, errNotDispatched); all.isForeign {
		return all, nil
	}
	of, _ := ownerOf(w)
	workers := map[string]*v1alpha1.WorkerCluster{}
	for _, key := range jobs {
		s := *all.checkSnapshot
		if err := r.addJob(ctx, &s, key, of, workers); err != nil {
			return nil, err
		}
		all.jobs = append(all.jobs, &s)
	}
	return all, nil
}

// addJob adds a Job of the Workload to a snapshot, unless the cache has another one of that name.
func (r *workloadReconciler) addJob(
	ctx context.Context, s *checkSnapshot, key types.NamespacedName, of owner, known map[string]*v1alpha1.WorkerCluster,
) error {
	var job batchv1.Job
	err := r.hub.Get(ctx, key, &job)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || of.group == (group.ID{}) && job.UID != of.UID {
		return nil
	}
	s.job = glanceAt(&job)
	s.admission = r.admission(ctx, &job, s.workload)
	if result, known := r.jobs.PlacementResult(key, job.UID); known {
		s.result = &result
	}
	s.assigned, err = r.workers(ctx, s.workers(), known)
	return err
}

// glanceAt is what decisions read of a Job. A Workload may have 10,000, which are held together.
func glanceAt(job *batchv1.Job) *batchv1.Job {
	glance := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, UID: job.UID},
		Spec:       batchv1.JobSpec{ManagedBy: job.Spec.ManagedBy},
		Status:     batchv1.JobStatus{Conditions: job.Status.Conditions},
	}
	if policy, has := job.Annotations[v1alpha1.AnnotationOnClusterLost]; has {
		glance.Annotations = map[string]string{v1alpha1.AnnotationOnClusterLost: policy}
	}
	return glance
}

// workers returns those of the named WorkerClusters that exist. Each is read once for a Workload.
func (r *workloadReconciler) workers(
	ctx context.Context, names []string, known map[string]*v1alpha1.WorkerCluster,
) (map[string]*v1alpha1.WorkerCluster, error) {
	workers := map[string]*v1alpha1.WorkerCluster{}
	for _, name := range names {
		worker, isKnown := known[name]
		if !isKnown {
			worker = &v1alpha1.WorkerCluster{}
			err := r.hub.Get(ctx, types.NamespacedName{Name: name}, worker)
			switch {
			case apierrors.IsNotFound(err):
				worker = nil
			case err != nil:
				return nil, err
			}
			known[name] = worker
		}
		if worker != nil {
			workers[name] = worker
		}
	}
	return workers, nil
}

// apply writes the desired state of a check, at once or later.
func (r *workloadReconciler) apply(ctx context.Context, s *checkSnapshot, p checkPlan) (changed bool, later time.Duration, err error) {
	message := text.Clean(p.message, text.MaxMessage)
	if p.state == "" || s.state.State == p.state && s.state.Message == message {
		return false, 0, nil
	}
	key := writtenKey{s.workload.UID, s.state.Name, p.state}
	if at, ok := r.written.Get(key); ok && s.state.State == p.state {
		return false, at.(time.Time).Add(messagePace).Sub(s.now), nil //nolint:forcetypeassert // see below
	}
	next := kueue.AdmissionCheckState{Name: s.state.Name, State: p.state, Message: message, LastTransitionTime: s.state.LastTransitionTime}
	if s.state.State != p.state {
		next.LastTransitionTime = metav1.NewTime(s.now)
	}
	if p.outOfQueue > 0 {
		next.RequeueAfterSeconds = ptr.To(int32(p.outOfQueue / time.Second))
	}
	states := appliedStates(s.workload, next, func(name string) bool {
		_, ours := r.check(ctx, name)
		return ours
	})
	if err := r.applyStatus(ctx, s.workload, map[string]any{"admissionChecks": states}); err != nil {
		return false, 0, err
	}
	r.written.Set(key, s.now, messagePace)
	log.FromContext(ctx).Info(message, "admissionCheck", next.Name, "state", next.State)
	return true, 0, nil
}

// appliedStates are the next state of one check, and the present states of Jobferry's others:
// server-side apply removes what a field owner leaves out.
func appliedStates(w *kueue.Workload, next kueue.AdmissionCheckState, ours func(name string) bool) []kueue.AdmissionCheckState {
	var states []kueue.AdmissionCheckState
	for _, state := range w.Status.AdmissionChecks {
		switch {
		case state.Name == next.Name:
			states = append(states, next)
		case ours(string(state.Name)):
			state.PodSetUpdates, state.RetryCount = nil, nil // not Jobferry's fields
			states = append(states, state)
		}
	}
	return states
}
