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
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/fence"
)

// hubs are Leases in a worker, and the fencer that listens to them.
type hubs struct {
	*cluster
	leases *fake.Clientset
	woken  []v1alpha1.Origin
	events *record.FakeRecorder
}

// withHubs has the cluster's shell listen to Leases.
func withHubs(c *cluster, after time.Duration) *hubs {
	c.t.Helper()
	h := &hubs{cluster: c, leases: fake.NewClientset(), events: record.NewFakeRecorder(10)}
	f := newFencer(Options{FenceAfter: after}.withDefaults(), h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace), c.clock)
	f.log, f.events, f.registry = logr.Discard(), h.events, prometheus.NewRegistry()
	leads := make(chan struct{})
	close(leads)
	f.elected = leads
	f.wake = func(_ context.Context, origin v1alpha1.Origin) { h.woken = append(h.woken, origin) }
	var err error
	if f.metrics, err = newFenceMetrics(prometheus.NewRegistry()); err != nil {
		c.t.Fatal(err)
	}
	c.jobs.fence = f
	return h
}

// renew is a hub's renewal, and the watch that brings it.
func (h *hubs) renew(origin v1alpha1.Origin, lostTimeout time.Duration) {
	h.t.Helper()
	leases := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: origin.FenceLease(), Labels: map[string]string{v1alpha1.LabelOrigin: string(origin)},
			Annotations: map[string]string{v1alpha1.AnnotationWorkerLostTimeout: lostTimeout.String()},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &metav1.MicroTime{Time: h.clock.Now()}},
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
	h.jobs.fence.hear(is)
	h.jobs.fence.turn(h.t.Context())
}

// silence lets time pass in which no hub renews.
func (h *hubs) silence(d time.Duration) {
	h.t.Helper()
	for end := h.clock.Now().Add(d); h.clock.Now().Before(end); {
		next := h.jobs.fence.turn(h.t.Context())
		if left := end.Sub(h.clock.Now()); next == 0 || next > left {
			next = left
		}
		h.clock.Step(next)
	}
	h.jobs.fence.turn(h.t.Context())
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

// The life of a fenced Job: marked before any Pod goes; it stays fenced over a restart, and a
// renewal; it goes on when the hub has taken the mark off.
func TestFencedJob(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	c.mustSync()
	h.silence(5 * time.Minute)
	c.mustSync()
	if len(c.pods()) != 2 || len(h.woken) != 0 {
		t.Fatalf("%d Pods, woken %v: the fence isn't closed yet", len(c.pods()), h.woken)
	}
	h.silence(time.Minute)
	if len(h.woken) != 1 || h.woken[0] != "hub" {
		t.Fatalf("woken %v", h.woken)
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
		t.Fatal("runs without the hub's word")
	}
	h.confirm()
	c.mustSync()
	if len(c.pods()) != 2 || c.job().Status.Failed != 0 {
		t.Errorf("%d Pods, status %+v", len(c.pods()), c.job().Status)
	}
}

// A Job is stopped only with its mark on record, else a crash would have it run again.
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

func TestJobsThatTheFenceLeavesAlone(t *testing.T) {
	for name, edit := range map[string]func(*batchv1.Job){
		"of nobody":                    func(*batchv1.Job) {},
		"of a hub that keeps no Lease": of("older"),
		"of a hub that is in touch":    of("other"),
		"let go by its hub": func(j *batchv1.Job) {
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
			if len(c.pods()) != 2 || len(h.woken) != 1 {
				t.Errorf("%d Pods, woken %v", len(c.pods()), h.woken)
			}
		})
	}
}

// The Lease of a hub that has let the worker go closes nothing.
func TestLeaseThatIsTakenAway(t *testing.T) {
	c := newCluster(t, Options{}, aJob(of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	lease, err := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(t.Context(), "jobferry-hub", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.silence(3 * time.Minute)
	h.jobs.fence.forget(lease)
	h.silence(time.Hour)
	if len(h.woken) != 0 {
		t.Errorf("woken %v", h.woken)
	}
}

// The hub learns when we close the fence, once.
func TestAnswerInTheLease(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	h.renew("hub", 15*time.Minute)
	lease, err := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(t.Context(), "jobferry-hub", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if word, _ := fence.Read(lease); word.After != 5*time.Minute {
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

// patient is an API server that takes its time to patch a Lease.
type patient struct {
	coordinationclient.LeaseInterface
	given time.Duration // for one patch
}

func (p *patient) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	p.given = time.Hour
	if end, ok := ctx.Deadline(); ok {
		p.given = time.Until(end)
	}
	return p.LeaseInterface.Patch(ctx, name, kind, data, o, sub...)
}

// An API server that hangs while a hub is answered keeps no fence from closing.
func TestAnswerIsBounded(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	slow := &patient{LeaseInterface: h.jobs.fence.leases}
	h.jobs.fence.leases = slow
	h.renew("hub", 15*time.Minute)
	if slow.given <= 0 || slow.given > askTimeout {
		t.Errorf("%s for one patch", slow.given)
	}
}

// An answer may come back after the watch has told that the Lease is gone.
func TestLeaseThatIsGoneIsForgotten(t *testing.T) {
	h := withHubs(newCluster(t, Options{}), 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	leases := h.leases.CoordinationV1().Leases(v1alpha1.SystemNamespace)
	lease, err := leases.Get(t.Context(), "jobferry-hub", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Delete(t.Context(), lease.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.jobs.fence.forget(lease)
	h.jobs.fence.hear(lease)
	h.silence(time.Hour)
	if len(h.woken) != 0 || len(h.jobs.fence.book.Origins()) != 0 {
		t.Errorf("woken %v, known %v", h.woken, h.jobs.fence.book.Origins())
	}
}

// A fence that closes too late is none, and everybody hears of it: once in events, all the time in
// readiness.
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

// While the own API server is away nobody can be stopped; when it's back, the hub gets the time to
// be heard.
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
	if len(h.woken) != 0 {
		t.Fatal("stopped the Jobs before the hub could be heard")
	}
	h.silence(time.Minute)
	if len(h.woken) != 1 {
		t.Error("the hub isn't there, and its Jobs run on")
	}
}

// Only unfinished Jobs of that origin that are ours are woken.
func TestWakeFenced(t *testing.T) {
	named := func(name string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Name, j.UID = name, types.UID(name) }
	}
	c := newCluster(t, Options{},
		aJob(named("ours"), of("hub")), aJob(named("of-another"), of("other")),
		aJob(named("built-in"), of("hub"), func(j *batchv1.Job) { j.Spec.ManagedBy = nil }),
		aJob(named("done"), of("hub"), func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
		}))
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if err := DefaultOptions().wakeFenced(t.Context(), c.api, "hub", q); err != nil {
		t.Fatal(err)
	}
	if q.Len() != 1 {
		t.Fatalf("%d Jobs woken", q.Len())
	}
	if got, _ := q.Get(); got.Name != "ours" {
		t.Errorf("woken %v", got)
	}
}
