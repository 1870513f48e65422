package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// lostAfter is the workerLostTimeout of all workers.
const lostAfter = 15 * time.Minute

// fakeWorker is a worker with its Job controller, and the manager's connection to it.
type fakeWorker struct {
	world *world
	api   *apiServer
	view  clusters.View
	cpus  int
	// since is since when the worker is away; zero: it is connected.
	since time.Time
	// idle: its controllers do nothing by themselves.
	idle bool
	// seen is the manager's cache of its mirrors, store what the manager knows of its capacity, ledger
	// a part of that.
	seen   jobs
	store  *placement.Store
	ledger *placement.Ledger
	// quotas are those of all namespaces alike, and devices those that are known; nil: none are.
	quotas  []*corev1.ResourceQuota
	devices placementtest.Devices
	// unreadable: what it has made up makes whoever reads it panic.
	unreadable bool
	// volumes are those that are known; nil: none are.
	volumes *placementtest.Volumes
	freed   int // how often the ledger said that capacity was freed
	// fenced: its Pods stop when it is away for as long as it takes to be lost.
	fenced bool
	// running are the indexes of the Job that have Pods.
	running intervals.Set
	// out: it adds no nodes, so that no Pod of a Job starts that hasn't started before.
	out     bool
	started map[types.UID]bool
	// stockouts are those in the status of its WorkerCluster.
	stockouts []v1alpha1.Stockout
	// early is by how much its Jobs started earlier than they did, as it says.
	early time.Duration
	// listsPods: its ledger has the Job's Pods; otherwise, it has as many as the Job shows.
	listsPods bool
	// behind is how far its clock is behind the hub's.
	behind time.Duration
	// observed is what its autoscaler says; nil: nothing.
	observed *placement.Observed
	// pods are the worker's controllers and the Job's Pods, where those are modelled.
	pods *podCluster
}

var _ worker = &fakeWorker{}

func (w *world) addWorker(name string, cpus int) *fakeWorker {
	v := &fakeWorker{world: w, api: newAPIServer(name, w.clock), cpus: cpus}
	v.view.State, v.view.Version, v.view.Capacity.Known = clusters.Ready, "v1.36.0", true
	v.view.Spec.JobController = v1alpha1.JobControllerBuiltIn
	w.workers[name] = v
	return v
}

// connect is what a new process does for a worker.
func (v *fakeWorker) connect() {
	v.seen = jobs{}
	v.store = placement.NewStore(func(c placement.Change) {
		v.freed++
		v.world.triggers.CapacityFreed(v.Name(), c)
	})
	v.ledger = v.store.Ledger
	v.ledger.OnStuck(func(key types.NamespacedName) { v.world.triggers.PodsStuck(v.Name(), key) })
	v.ledger.SetNode(placementtest.NewNode("node").Has("cpu", fmt.Sprint(v.cpus), "pods", "110").Obj())
}

func (v *fakeWorker) isAway() bool              { return !v.since.IsZero() }
func (v *fakeWorker) Name() string              { return v.api.name }
func (v *fakeWorker) View() clusters.View       { return v.view }
func (v *fakeWorker) Synced() bool              { return !v.isAway() }
func (v *fakeWorker) ControllerSeen() time.Time { return time.Time{} }
func (v *fakeWorker) Client() client.Client     { return v.world.client(v.api) }
func (v *fakeWorker) Ledger() *placement.Ledger { return v.ledger }

// Hold implements worker: the world fails on a request whose answer isn't held.
func (v *fakeWorker) Hold(ctx context.Context) (context.Context, func()) {
	return context.WithValue(ctx, heldIn(v.Name()), true), func() {}
}

// heldIn is the key of a context for requests to a worker whose answers are held.
type heldIn string

func (v *fakeWorker) Mirrors() []packed.Facts {
	var facts []packed.Facts
	for _, m := range v.seen {
		facts = append(facts, packed.FactsOf(m))
	}
	return facts
}

func (v *fakeWorker) Mirror(key types.NamespacedName) (*batchv1.Job, bool) {
	m, ok := v.seen[key]
	if ok && v.world.lightly != nil {
		m = m.DeepCopy()
		mirror.LightenMirror(m)
	}
	return m, ok
}

// UnseenMirrors implements worker: the Pods of what runs say what they are.
func (v *fakeWorker) UnseenMirrors() (unseen []types.NamespacedName) {
	for key, m := range v.api.jobs {
		_, isSeen := v.seen[key]
		if m.Status.Active > 0 && !isSeen {
			unseen = append(unseen, key)
		}
	}
	return unseen
}

func (v *fakeWorker) Unschedulable(mirror objectnames.ID) placement.Report {
	report := v.ledger.Unschedulable(mirror)
	for _, job := range v.api.jobs {
		if job.UID == mirror.UID && v.pods == nil && !v.listsPods && report.Unschedulable == 0 {
			report.Bound = max(report.Bound, int(job.Status.Active+ptr.Deref(job.Status.Terminating, 0)))
		}
	}
	return report
}

func (v *fakeWorker) PodTimes(objectnames.ID) usage.Times { return usage.Times{} }

func (v *fakeWorker) PodTimesAt(objectnames.ID, usage.Accounted) (then, listed usage.Times) {
	return usage.Times{}, usage.Times{}
}

func (v *fakeWorker) Free(key types.NamespacedName, reads placement.Reads) *placement.Snapshot {
	if v.unreadable {
		panic("made up")
	}
	free := &placement.Snapshot{NodesUnknown: true}
	if v.view.Capacity.Known {
		*free = *v.store.Bound.Snapshot(v.ledger.Free(key), key)
		free.Autoscaling, free.Devices = v.Room(key), v.devices
		if v.quotas != nil {
			free.Admission = &placementtest.Admission{Quotas: v.quotas}
		}
	}
	if reads.Claims {
		free.Volumes = v.volumes
	}
	return free
}

func (v *fakeWorker) Room(key types.NamespacedName) *placement.Room {
	return v.store.Room(key, &placement.Autoscaler{Spec: v.view.Spec.Autoscaling, Observed: v.observed})
}

// fakeRegistry has the workers of a world.
type fakeRegistry struct {
	world  *world
	loaded chan struct{}
}

var _ workers = &fakeRegistry{}

func (r *fakeRegistry) Loaded() <-chan struct{} { return r.loaded }

func (r *fakeRegistry) get(name string) (worker, bool) {
	v, ok := r.world.workers[name]
	return v, ok
}

func (r *fakeRegistry) list() []worker {
	var all []worker
	for _, v := range r.world.registered() {
		all = append(all, v)
	}
	return all
}

// registered are the workers in order of names.
func (w *world) registered() []*fakeWorker {
	var all []*fakeWorker
	for _, name := range slices.Sorted(maps.Keys(w.workers)) {
		all = append(all, w.workers[name])
	}
	return all
}

func (r *fakeRegistry) holders(key types.NamespacedName) []worker {
	return slices.DeleteFunc(r.list(), func(w worker) bool { m, ok := w.Mirror(key); return !ok || mirror.HubUID(m) == "" })
}

// PlacementsChanged implements workers.
func (r *fakeRegistry) PlacementsChanged(worker string) {
	r.world.placementsChanged = append(r.world.placementsChanged, worker)
}

// StockoutsChanged implements workers: they're in the worker's status.
func (r *fakeRegistry) StockoutsChanged(worker string) {
	r.world.worker(worker).stockouts = r.world.Stockouts(worker)
}

// Loss implements workers: a worker that is away for long enough is lost while another is
// connected.
func (r *fakeRegistry) Loss(name string) clusters.Loss {
	v := r.world.workers[name]
	if v == nil || !v.isAway() {
		return clusters.Loss{State: clusters.NotLost}
	}
	loss := clusters.Loss{State: clusters.LossPending, Since: v.since, At: v.since.Add(lostAfter)}
	if r.world.clock.Now().Before(loss.At) {
		return loss
	}
	loss.At, loss.State = time.Time{}, clusters.Isolated
	for _, other := range r.world.workers {
		if !other.isAway() {
			loss.State = clusters.Lost
		}
	}
	return loss
}

// work is one sync of a worker's own Job controller and garbage collector.
func (v *fakeWorker) work() {
	if v.idle {
		return
	}
	if v.pods != nil {
		v.pods.work()
		return
	}
	v.api.collectGarbage()
	if v.api.jobs[jobKey] == nil {
		v.running = nil
	}
	for _, key := range v.api.jobs.keys() {
		before := v.api.jobs[key].Status.Active
		v.api.change(key, v.sync)
		if after := v.api.jobs[key].Status.Active; after != before {
			v.world.logf(v.Name(), "has %d Pods of %s", after, key.Name)
		}
	}
}

// sync brings a Job's Pods and status to its spec. All its Pods run at once.
func (v *fakeWorker) sync(job *batchv1.Job) {
	s := &job.Status
	switch {
	case mirror.Finished(job), !slices.Contains([]string{"", batchv1.JobControllerName, v1alpha1.ManagedByWorker}, ptr.Deref(job.Spec.ManagedBy, "")):
		return
	case shards.Indexed(job):
		v.syncIndexes(job)
		return
	case mirror.Suspended(job):
		s.Active, s.Ready, s.StartTime = 0, ptr.To[int32](0), nil
		v.condition(job, batchv1.JobSuspended, corev1.ConditionTrue)
	case s.Succeeded >= *job.Spec.Completions:
		s.Active, s.Ready, s.CompletionTime = 0, ptr.To[int32](0), ptr.To(metav1.NewTime(v.now()))
		v.condition(job, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue)
		v.condition(job, batchv1.JobComplete, corev1.ConditionTrue)
	default:
		if s.StartTime == nil {
			s.StartTime = ptr.To(metav1.NewTime(v.now().Add(-v.early)))
		}
		if len(s.Conditions) > 0 {
			v.condition(job, batchv1.JobSuspended, corev1.ConditionFalse)
		}
		s.Active = min(*job.Spec.Parallelism, *job.Spec.Completions-s.Succeeded)
		s.Ready = ptr.To(s.Active)
		if v.out && !v.started[job.UID] {
			s.Ready = ptr.To[int32](0)
			v.ledger.SetPod(pendingPod(job))
		} else if v.started != nil {
			v.started[job.UID] = true
			v.ledger.DeletePod(pendingPod(job).UID)
		}
	}
	s.Terminating = ptr.To[int32](0)
}

func (v *fakeWorker) now() time.Time { return v.world.clock.Now().Add(-v.behind) }

func (v *fakeWorker) condition(job *batchv1.Job, kind batchv1.JobConditionType, is corev1.ConditionStatus) {
	conditions := &job.Status.Conditions
	i := slices.IndexFunc(*conditions, func(c batchv1.JobCondition) bool { return c.Type == kind })
	if i < 0 {
		*conditions, i = append(*conditions, batchv1.JobCondition{Type: kind}), len(*conditions)
	}
	if c := &(*conditions)[i]; c.Status != is {
		c.Status, c.LastTransitionTime = is, metav1.NewTime(v.now())
	}
}
