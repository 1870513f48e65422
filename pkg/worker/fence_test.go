package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/queue"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

// hubs are Leases in a worker, and the fencer that watches them.
type hubs struct {
	*cluster
	leases   *fake.Clientset
	enqueued []v1alpha1.Origin
	events   *record.FakeRecorder
}

// withHubs gives the cluster's reconciler a fencer.
func withHubs(c *cluster, after time.Duration) *hubs {
	c.t.Helper()
	h := &hubs{cluster: c, leases: fake.NewClientset(), events: record.NewFakeRecorder(10)}
	f := newFencer(Options{FenceAfter: after}.withDefaults(), h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace), c.clock)
	f.log, f.events, f.registry = logr.Discard(), h.events, prometheus.NewRegistry()
	elected := make(chan struct{})
	close(elected)
	f.elected = elected
	f.origins = func(ctx context.Context) (sets.Set[v1alpha1.Origin], error) { return fencedOrigins(ctx, c.api) }
	f.enqueueJobs = func(_ context.Context, origins sets.Set[v1alpha1.Origin]) {
		h.enqueued = append(h.enqueued, sets.List(origins)...)
	}
	var err error
	if f.metrics, err = newFenceMetrics(prometheus.NewRegistry()); err != nil {
		c.t.Fatal(err)
	}
	c.jobs.fence = f
	return h
}

// renew is a hub's renewal, which the watch delivers.
func (h *hubs) renew(origin v1alpha1.Origin, lostTimeout time.Duration) {
	h.t.Helper()
	leases := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: origin.FenceLease(), Labels: map[string]string{v1alpha1.LabelOrigin: string(origin)},
			Annotations: map[string]string{v1alpha1.AnnotationWorkerLostTimeout: lostTimeout.String()},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("manager"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &metav1.MicroTime{Time: h.clock.Now()}},
	}
	is, err := leases.Get(h.t.Context(), lease.Name, metav1.GetOptions{})
	if err == nil {
		is.Spec = lease.Spec
		is, err = leases.Update(h.t.Context(), is, metav1.UpdateOptions{})
	} else {
		is, err = leases.Create(h.t.Context(), lease, metav1.CreateOptions{})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.jobs.fence.observe(is)
	h.jobs.fence.sync(h.t.Context())
}

// silence lets time pass in which no hub renews.
func (h *hubs) silence(d time.Duration) {
	h.t.Helper()
	for end := h.clock.Now().Add(d); h.clock.Now().Before(end); {
		next := h.jobs.fence.sync(h.t.Context())
		if left := end.Sub(h.clock.Now()); next == 0 || next > left {
			next = left
		}
		h.clock.Step(next)
	}
	h.jobs.fence.sync(h.t.Context())
}

func of(origin string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Labels = map[string]string{v1alpha1.LabelOrigin: origin} }
}

func (h *hubs) confirm() {
	h.t.Helper()
	job := h.job()
	delete(job.Annotations, v1alpha1.AnnotationFenced)
	if err := h.api.Update(h.t.Context(), job); err != nil {
		h.t.Fatal(err)
	}
}

// The life of a fenced Job: it is marked before any Pod is deleted, stays fenced over a restart and
// a renewal, and continues when the hub has removed the mark.
func TestFencedJob(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	c.mustSync()
	h.silence(5 * time.Minute)
	c.mustSync()
	if len(c.pods()) != 2 || len(h.enqueued) != 0 {
		t.Fatalf("%d Pods, enqueued %v: the fence isn't closed yet", len(c.pods()), h.enqueued)
	}
	h.silence(time.Minute)
	if len(h.enqueued) != 1 || h.enqueued[0] != "hub" {
		t.Fatalf("enqueued %v", h.enqueued)
	}
	before := len(c.writes)
	c.mustSync()
	if len(c.pods()) != 0 || !v1alpha1.IsFenced(c.job()) || c.writes[before] != "patch job" {
		t.Fatalf("%d Pods, annotations %v, writes %v", len(c.pods()), c.job().Annotations, c.writes[before:])
	}
	c.start(Options{})
	h = withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	for range 2 {
		c.mustSync()
	}
	if len(c.pods()) != 0 {
		t.Fatal("runs before the hub has confirmed it")
	}
	h.confirm()
	c.mustSync()
	if len(c.pods()) != 2 || c.job().Status.Failed != 0 {
		t.Errorf("%d Pods, status %+v", len(c.pods()), c.job().Status)
	}
}

// A Job is stopped only with its mark written, else it would run again after a crash.
func TestFencedJobThatCannotBeMarked(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	c.mustSync()
	h.silence(time.Hour)
	c.writesLeft = 0
	if _, err := c.sync(); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if len(c.pods()) != 2 || v1alpha1.IsFenced(c.job()) {
		t.Error("stopped without a mark")
	}
}

// Whatever keeps a Job that is being deleted, its Pods must not run when the hub moves it.
func TestFencedJobThatIsBeingDeleted(t *testing.T) {
	for name, row := range map[string]struct {
		marked    bool
		finalizer string
		left      int
	}{
		"marked before":              {true, "example.com/audit", 0},
		"not marked":                 {false, "example.com/audit", 0},
		"its Pods are to be orphans": {false, metav1.FinalizerOrphanDependents, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob(of("hub"), func(j *batchv1.Job) {
				j.Finalizers = []string{row.finalizer}
				if row.marked {
					j.Annotations = map[string]string{v1alpha1.AnnotationFenced: "2026-01-01T12:00:00Z"}
				}
				j.DeletionTimestamp = ptr.To(metav1.Now())
			}), aPod("a"), aPod("b"))
			h := withHubs(c, 5*time.Minute)
			h.renew("hub", 15*time.Minute)
			c.mustSync()
			if got := len(c.pods()); got != 2 && !row.marked {
				t.Errorf("%d Pods while the hub renews", got)
			}
			h.silence(time.Hour)
			c.mustSync()
			if got := len(c.pods()); got != row.left {
				t.Errorf("%d Pods run, want %d", got, row.left)
			}
		})
	}
}

func TestJobsThatTheFenceLeavesAlone(t *testing.T) {
	for name, edit := range map[string]func(*batchv1.Job){
		"without a hub":        func(*batchv1.Job) {},
		"of a hub that renews": of("other"),
		"released by its hub": func(j *batchv1.Job) {
			j.Annotations = map[string]string{v1alpha1.AnnotationFenced: "2026-01-01T12:00:00Z"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob(edit))
			h := withHubs(c, 5*time.Minute)
			h.renew("hub", 15*time.Minute)
			h.silence(time.Hour)
			h.renew("other", 15*time.Minute)
			c.mustSync()
			if len(c.pods()) != 2 || len(h.enqueued) != 1 {
				t.Errorf("%d Pods, enqueued %v", len(c.pods()), h.enqueued)
			}
		})
	}
}

// The fencer writes once into the Lease when it closes the fence.
func TestFenceAfterIsPublished(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	h.renew("hub", 15*time.Minute)
	lease, err := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(t.Context(), "jobferry-fence-hub", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := fence.Read(lease); got.After != 5*time.Minute {
		t.Errorf("annotations %v", lease.Annotations)
	}
	patches := 0
	for _, a := range h.leases.Actions() {
		if a.GetVerb() == "patch" {
			patches++
		}
	}
	if patches != 1 {
		t.Errorf("%d patches", patches)
	}
}

// slowLeases records how long a patch of a Lease may take.
type slowLeases struct {
	coordinationclient.LeaseInterface
	allowed time.Duration // for one patch
}

func (p *slowLeases) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	p.allowed = time.Hour
	if end, ok := ctx.Deadline(); ok {
		p.allowed = time.Until(end)
	}
	return p.LeaseInterface.Patch(ctx, name, kind, data, o, sub...)
}

// An API server that hangs while it patches a Lease keeps no fence from closing.
func TestPublishingIsBounded(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	slow := &slowLeases{LeaseInterface: h.jobs.fence.leases}
	h.jobs.fence.leases = slow
	h.renew("hub", 15*time.Minute)
	if slow.allowed <= 0 || slow.allowed > leaseTimeout {
		t.Errorf("%s for one patch", slow.allowed)
	}
}

// A fence that closes too late is reported: once as an event, and by the readiness check.
func TestFenceThatIsTooLate(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	if err := h.jobs.fence.ready(nil); err != nil {
		t.Fatal(err)
	}
	h.renew("hub", 5*time.Minute)
	h.renew("hub", 5*time.Minute)
	if err := h.jobs.fence.ready(nil); err == nil || !strings.Contains(err.Error(), "--fence-after=5m0s") {
		t.Errorf("readiness %v", err)
	}
	if len(h.events.Events) != 1 {
		t.Errorf("%d events", len(h.events.Events))
	}
}

// A hub's Lease, or its thief's, that is too late for the fence makes the worker unready for no
// other hub.
func TestALateHubLeavesOthersReady(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	h.renew("thief", time.Minute)
	if err := h.jobs.fence.ready(nil); err != nil {
		t.Errorf("readiness %v", err)
	}
	if late := h.jobs.fence.tracker.Late(); late["thief"] == nil || late["hub"] != nil {
		t.Errorf("late are %v", late)
	}
}

// While the own API server is away no Job can be stopped. When it's back, the hub gets the time to
// renew its Lease.
func TestOwnAPIServerIsAway(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	away := true
	h.leases.PrependReactor("list", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
		return away, nil, errors.New("connection refused")
	})
	h.silence(8 * time.Minute)
	away = false
	h.silence(time.Minute)
	if len(h.enqueued) != 0 {
		t.Fatal("stopped the Jobs before the hub could renew its Lease")
	}
	h.silence(time.Minute)
	if len(h.enqueued) != 1 {
		t.Error("the hub doesn't renew its Lease, and its Jobs run on")
	}
}

// Only unfinished Jobs of that origin that we manage are enqueued.
func TestEnqueueFenced(t *testing.T) {
	named := func(name string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Name, j.UID = name, types.UID(name) }
	}
	c := newCluster(t, Options{},
		aJob(named("ours"), of("hub")), aJob(named("of-another"), of("other")),
		aJob(named("built-in"), of("hub"), func(j *batchv1.Job) { j.Spec.ManagedBy = nil }),
		aJob(named("done"), of("hub"), func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
		}))
	q := queue.New("fence", nil)
	defer q.ShutDown()
	if err := DefaultOptions().enqueueFenced(t.Context(), c.api, sets.New[v1alpha1.Origin]("hub"), q); err != nil {
		t.Fatal(err)
	}
	if q.Len() != 1 {
		t.Fatalf("%d Jobs enqueued", q.Len())
	}
	if got, _ := q.Get(); got.Name != "ours" {
		t.Errorf("enqueued %v", got)
	}
}
