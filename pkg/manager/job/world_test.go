package job

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/revision"
)

// jobKey is the name of the Job that most stories are about.
var jobKey = types.NamespacedName{Namespace: "team", Name: "train"}

// world is a hub, some workers and a manager, all in memory, with a clock that is stepped. What the
// manager's watches show lags behind: it is delivered when the manager has nothing left to do.
type world struct {
	testing.TB
	clock *stepClock
	hub   *apiServer
	seen  jobs // the manager's cache of the hub's Jobs
	// enlarges changes the Jobs that are submitted.
	enlarges func(*batchv1.Job)
	// lightly has the caches hold no Pod templates, and of hub Jobs what it leaves.
	lightly func(*batchv1.Job)
	workers map[string]*fakeWorker
	kueue   fakeQueues
	// jobSets are the hub's, by name, as its API server sends them.
	jobSets map[string]string
	// namespace has the labels of the Jobs' namespace, hub and cache alike.
	namespace map[string]string
	classes   priorityClasses

	// The manager's process.
	*Reconciler
	triggers   *triggers
	queue      fakeQueue
	backoff    workqueue.TypedRateLimiter[ctrl.Request]
	due        map[types.NamespacedName]time.Time // to be reconciled without any event
	killed     bool
	reconciles bool // a reconcile is under way
	// cacheSyncs: a process places Jobs when it has seen all.
	cacheSyncs bool
	// startedBy is the context in which the first placements wait for the workers.
	startedBy context.Context

	// What the manager has done, and what keeps it from that.
	log               []string
	events            []string
	writes            int
	placementsChanged []string
	kill              kill
	refuses           func(write) error // nil: nothing is refused
	answers           func(write)       // called before the answer to a write arrives
	// finished are the indexes that have completed.
	finished intervals.Set
	// parallelism is the most Pods that may run at once.
	parallelism int
	// mayRunTwice: a worker keeps what it runs.
	mayRunTwice bool
}

// newWorld has the workers a and b with 8 CPUs each, and a manager that has just started.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, clock: newStepClock(), workers: map[string]*fakeWorker{}}
	w.startedBy = t.Context()
	w.hub = newAPIServer("hub", w.clock)
	w.namespace = map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed}
	w.kueue = fakeQueues{admissions: map[string]dispatch.Admission{}}
	w.addWorker("a", 8)
	w.addWorker("b", 8)
	w.workers["a"].view.Spec.Weight = 3 // Jobs go there first
	w.start()
	return w
}

// start begins a new process, which remembers nothing.
func (w *world) start() {
	w.killed, w.seen, w.queue, w.due = false, jobs{}, fakeQueue{}, map[types.NamespacedName]time.Time{}
	w.backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry)
	options := Options{
		Namespace: v1alpha1.SystemNamespace, Origin: "hub-1", Concurrency: 16, WorkerConcurrency: 2,
		PassOver: 5 * time.Minute, Timing: dispatch.DefaultTiming(), Groups: group.Kinds{group.JobSetKind},
	}
	hub, registry := w.client(w.hub), &fakeRegistry{world: w, loaded: make(chan struct{})}
	close(registry.loaded)
	w.Reconciler = newReconciler(hub, hub, hubCache{w}, revision.NewGuard(hub, clock.RealClock{}), w, w.clock, options)
	w.triggers = w.connect(registry, &w.kueue, &w.queue)
	w.background = func(f func()) { f() }
	w.sideBySide = func(n int, call func(int)) {
		for i := range n {
			call(i)
		}
	}
	w.copier = &copier.Copier{
		Hub: hub, Origin: options.Origin, Registers: w.isRegistration, Tracker: copier.NewTracker(w.clock), Watch: watchesNothing{},
	}
	for _, v := range w.registered() {
		v.connect()
		w.RestoreStockouts(v.Name(), v.stockouts)
	}
	if w.cacheSyncs {
		w.deliver()
	}
	if err := w.startup.Start(w.startedBy); err != nil {
		w.Fatal(err)
	}
}

// hubCache is the manager's cache of the hub.
type hubCache struct{ w *world }

func (c hubCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if class, ok := into.(*schedulingv1.PriorityClass); ok {
		return c.w.classes.get(key.Name, class)
	}
	if namespace, ok := into.(*metav1.PartialObjectMetadata); ok {
		namespace.Name, namespace.Labels = key.Name, c.w.namespace
		return nil
	}
	err := c.w.seen.Get(ctx, key, into, o...)
	if job, ok := into.(*batchv1.Job); ok && err == nil {
		*job = *c.w.held(job)
	}
	return err
}

// held is a hub Job as the cache holds it.
func (w *world) held(job *batchv1.Job) *batchv1.Job {
	if w.lightly == nil || job == nil {
		return job
	}
	job = job.DeepCopy()
	w.lightly(job)
	return job
}

func (c hubCache) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	if classes, ok := into.(*schedulingv1.PriorityClassList); ok {
		classes.Items = c.w.classes
		return nil
	}
	return c.w.seen.List(ctx, into, o...)
}

// watchesNothing is the watch of what Jobs refer to.
type watchesNothing struct{}

func (watchesNothing) Add(context.Context, carry.Kind) error { return nil }

// deliver shows the manager what has changed in the clusters, and reports whether anything has.
func (w *world) deliver() (changed bool) {
	events := w.triggers.jobEvents()
	differences(w.hub.jobs, w.seen, func(before, after *batchv1.Job) {
		changed = true
		before, after = w.held(before), w.held(after)
		switch {
		case after == nil:
			events.Delete(w.Context(), event.TypedDeleteEvent[*batchv1.Job]{Object: before}, nil)
		case before == nil:
			events.Create(w.Context(), event.TypedCreateEvent[*batchv1.Job]{Object: after}, nil)
		default:
			events.Update(w.Context(), event.TypedUpdateEvent[*batchv1.Job]{ObjectOld: before, ObjectNew: after}, nil)
		}
	})
	for _, v := range w.registered() {
		if v.isAway() {
			continue
		}
		differences(v.mirrors(), v.seen, func(before, after *batchv1.Job) {
			changed = true
			c := clusters.MirrorChange{Key: keyOf(cmp.Or(after, before)), Exists: after != nil, IsProgress: func() bool {
				return before != nil && after != nil && !mirror.Finished(after) && mirror.IsProgress(before, after)
			}}
			if after == nil {
				c.Last = v.lastOf(before)
			}
			if c.Last != nil {
				w.triggers.MirrorChanged(v.Name(), c)
				c.Last = nil
			}
			w.triggers.MirrorChanged(v.Name(), c)
		})
	}
	return changed
}

// mirrors are the Jobs of this origin, which is what the manager watches.
// lastOf is the last state of a mirror that the watch shows no more, as the feed tells it.
func (v *fakeWorker) lastOf(before *batchv1.Job) *batchv1.Job {
	last := before.DeepCopy()
	if gone := v.api.gone[keyOf(before)]; gone != nil && gone.UID == before.UID {
		last = gone.DeepCopy()
	}
	if mirror.Finished(last) && !mirror.EndedByItself(last) || before.DeletionTimestamp != nil && !mirror.Finished(last) {
		return nil
	}
	if before.DeletionTimestamp == nil && !mirror.Finished(last) {
		last.DeletionTimestamp = nil // the first that is seen of a deletion may be its end
	}
	return last
}

func (v *fakeWorker) mirrors() jobs {
	ours := jobs{}
	for key, job := range v.api.jobs {
		if job.Labels[v1alpha1.LabelOrigin] == "hub-1" && mirror.HubUID(job) != "" {
			ours[key] = job
		}
	}
	return ours
}

// differences brings a cache to the state of an API server, and calls back for each change.
func differences(server, cache jobs, each func(before, after *batchv1.Job)) {
	for _, key := range cache.keys() {
		if server[key] == nil {
			before := cache[key]
			delete(cache, key)
			each(before, nil)
		}
	}
	for _, key := range server.keys() {
		before, after := cache[key], server[key]
		if before == nil || before.ResourceVersion != after.ResourceVersion {
			cache[key] = after.DeepCopy()
			each(before, cache[key])
		}
	}
}

// run goes on until nothing is left to do at this time, for the manager and for the workers.
func (w *world) run() {
	w.Helper()
	_, _ = w.runUntil(func() bool { return false })
}

// runUntil does the same, and returns early, with the answer of the last reconcile, when something
// has happened.
func (w *world) runUntil(happened func() bool) (ctrl.Result, error) {
	w.Helper()
	for range 1000 {
		if w.killed {
			w.logf("manager", "is killed, and starts again")
			w.start()
		}
		if len(w.queue.requests) > 0 {
			if result, err := w.reconcile(); happened() {
				return result, err
			}
			continue
		}
		for _, v := range w.registered() {
			v.work()
		}
		w.hub.collectGarbage()
		if !w.deliver() && len(w.queue.requests) == 0 {
			return ctrl.Result{}, nil
		}
	}
	w.fail("the manager doesn't come to rest")
	return ctrl.Result{}, nil
}

// reconcile reconciles the Job that is next in the queue, and remembers when to do so again.
func (w *world) reconcile() (ctrl.Result, error) {
	request := w.queue.next()
	key := request.NamespacedName
	delete(w.due, key)
	w.reconciles = true
	result, err := w.Reconcile(w.Context(), request)
	w.reconciles = false
	switch {
	case w.killed:
	case err != nil:
		w.due[key] = w.clock.Now().Add(w.backoff.When(request))
	case result.RequeueAfter > 0:
		w.backoff.Forget(request)
		w.due[key] = w.clock.Now().Add(result.RequeueAfter)
	default:
		w.backoff.Forget(request)
	}
	return result, err
}

// step lets time go by, and everything happen that is due.
func (w *world) step(d time.Duration) {
	w.Helper()
	w.run()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); w.run() {
		next := end
		for _, at := range w.due {
			if at.Before(next) {
				next = at
			}
		}
		if at, is := w.clock.next(); is && at.Before(next) {
			next = at
		}
		w.clock.SetTime(next)
		for key, at := range w.due {
			if !at.After(next) {
				w.triggers.Enqueue(key)
			}
		}
	}
}

// fail ends the test with the log.
func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\n%s", strings.Join(w.log, "\n"), fmt.Sprintf(format, args...))
}

// aJob is a Job of ours that runs four Pods, two at a time, each on a CPU.
func aJob(name string, changes ...func(*batchv1.Job)) *batchv1.Job {
	job := mirrortest.New(name).ManagedBy(v1alpha1.ManagedByDispatcher).Completions(4).Parallelism(2).Obj()
	job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: oneCPU}
	for _, change := range changes {
		change(job)
	}
	return job
}
