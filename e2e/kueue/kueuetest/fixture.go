package kueuetest

import (
	"context"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/program"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// Fixture is a hub with Kueue, its manager and workers, as one test sees them.
type Fixture struct {
	*ferrytest.Ferry
	t testing.TB
	// Kueue is its process.
	Kueue *rig.Component
}

// hubs are those that have Kueue.
var hubs struct {
	sync.Mutex
	kueue map[*rig.Cluster]*rig.Component
}

// For prepares the hub if need be, and returns the fixture of a test.
func For(t testing.TB) *Fixture {
	t.Helper()
	return Of(t, ferrytest.For(t), options())
}

// Of is For with another fixture's hub and namespace. Kueue has the options that it's started with
// first.
func Of(t testing.TB, ferry *ferrytest.Ferry, options program.Options) *Fixture {
	t.Helper()
	f := &Fixture{Ferry: ferry, t: t}
	f.Kueue = f.ensureKueue(options)
	return f
}

// options are those of tests that need no others.
func options() program.Options { return program.Options{PodsReadyTimeout: 5 * time.Minute} }

// WithoutKueue is For on a hub that has no Kueue yet.
func WithoutKueue(t testing.TB, hub string) *Fixture {
	t.Helper()
	return &Fixture{Ferry: ferrytest.ForHub(t, hub), t: t}
}

// Install brings Kueue to the hub, unless it's there.
func (f *Fixture) Install() {
	f.t.Helper()
	f.Kueue = f.ensureKueue(options())
}

func (f *Fixture) ensureKueue(options program.Options) *rig.Component {
	f.t.Helper()
	hubs.Lock()
	defer hubs.Unlock()
	if running := hubs.kueue[f.Hub]; running != nil {
		return running
	}
	// The first build takes longer than a test may.
	kueue, err := program.Start(context.Background(), f.Hub, options)
	if err != nil {
		f.t.Fatal(err)
	}
	if hubs.kueue == nil {
		hubs.kueue = map[*rig.Cluster]*rig.Component{}
	}
	hubs.kueue[f.Hub] = kueue
	return kueue
}

// Manager runs the manager with exactly the rights that config/ gives it, and with short delays in
// what it does with Kueue.
func (f *Fixture) Manager(edits ...func(*manager.Options)) *ferrytest.Manager {
	f.t.Helper()
	f.grant()
	short := func(o *manager.Options) {
		o.Kueue.RetryAfter = 5 * time.Second
		o.Kueue.RequeueAfter = time.Second
		o.Kueue.MaxRequeueAfter = 2 * time.Second
	}
	return f.RunManager(append([]func(*manager.Options){short}, edits...)...)
}

// grant gives the manager's ServiceAccount its roles, and has the manager be that.
func (f *Fixture) grant() {
	f.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: program.Namespace}} // a role is there
	if _, err := f.Hub.Client().CoreV1().Namespaces().Create(f.Context(), namespace, metav1.CreateOptions{}); client.IgnoreAlreadyExists(err) != nil {
		f.t.Fatal(err)
	}
	for _, part := range []string{"rbac", "kueue"} {
		for _, file := range []string{"role.yaml", "bindings.yaml"} {
			f.Kubectl(f.Hub, "", "apply", "--server-side", "-f", checkout.Path("config", part, file))
		}
	}
	f.ManagerUser = "system:serviceaccount:" + ferrytest.SystemNamespace + ":jobferry-manager"
}

// Queue sends a Job to a LocalQueue.
func Queue(name string) rigtest.Option { return label("kueue.x-k8s.io/queue-name", name) }

// Priority gives a Job a WorkloadPriorityClass.
func Priority(class string) rigtest.Option { return label("kueue.x-k8s.io/priority-class", class) }

func label(key, value string) rigtest.Option {
	return func(j *batchv1.Job) {
		if j.Labels == nil {
			j.Labels = map[string]string{}
		}
		j.Labels[key] = value
	}
}

// Requests is what each Pod of a Job asks for.
func Requests(cpu string) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: Quantity(cpu)}
	}
}

// UIDOf reads a hub Job's UID.
func (f *Fixture) UIDOf(name string) types.UID {
	f.t.Helper()
	return f.HubJobUntil(name, ferrytest.Exists).UID
}
