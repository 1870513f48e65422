package loss_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

const (
	// lostTimeout of the workers: long enough for a machine that is busy to probe in between.
	lostTimeout = 4 * time.Second
	// Of the worker with the embedded controller, whose fence must close first.
	embeddedLostTimeout = 8 * time.Second
	lease               = 2 * time.Second
	fenceAfter          = 3 * time.Second
	// seat is a resource of w2 and embedded alone: what needs it fits nowhere else.
	seat = "example.org/seat"
)

func TestMain(m *testing.M) {
	seats := map[string]string{seat: "8"}
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName, Release: binaries.Hub(binaries.Current), Audit: true},
		rig.Options{Name: "w1", Release: binaries.Worker(binaries.Current), FaultProxy: true, Nodes: []rig.Nodes{{Count: 2}}},
		rig.Options{Name: "w2", Release: binaries.Worker(binaries.Current), FaultProxy: true, Nodes: []rig.Nodes{{Count: 2, Extended: seats}}},
		rig.Options{Name: "embedded", Release: binaries.Worker(binaries.Current), FaultProxy: true, JobController: rig.None, Nodes: []rig.Nodes{{Count: 2, Extended: seats}}},
	)
}

// scene is a hub with its workers, all connected.
type scene struct {
	*ferrytest.Ferry
	*ferrytest.Manager
	t *testing.T
}

// open starts the manager, and registers the workers. They are connected again when the test ends.
func open(t *testing.T, workers ...string) *scene {
	t.Helper()
	s := &scene{Ferry: ferrytest.For(t), t: t}
	s.prepare(workers...)
	s.Manager = s.RunManager(settings)
	s.Register(workers...)
	s.settle(workers...)
	return s
}

func settings(o *manager.Options) {
	o.Connection.WorkerLostTimeout = lostTimeout
	o.Connection.ProbeInterval, o.Connection.ProbeTimeout = 500*time.Millisecond, 500*time.Millisecond
	o.Connection.RetryDelay, o.Connection.MaxBackoff = 200*time.Millisecond, time.Second
	o.Fence.Duration = lease
}

func (s *scene) prepare(workers ...string) {
	s.t.Helper()
	for _, worker := range workers {
		s.LeaveWorker(worker)
		s.t.Cleanup(s.Cluster(worker).Proxy().Heal)
		if worker == "embedded" {
			s.startWorker()
		}
	}
}

// settle sets the workers to what they are at the start of each test.
func (s *scene) settle(workers ...string) {
	s.t.Helper()
	for _, worker := range workers {
		spec := `{"drain":false,"cordoned":false,"workerLostTimeout":null,"jobController":"BuiltIn"}`
		if worker == "embedded" {
			spec = fmt.Sprintf(`{"drain":false,"cordoned":false,"workerLostTimeout":%q,"jobController":"Embedded"}`, embeddedLostTimeout)
		}
		s.SetWorker(worker, spec)
	}
	for _, worker := range workers {
		s.WorkerUntil(worker, ferrytest.Ready)
		if worker == "embedded" {
			s.WorkerUntil(worker, func(w *v1alpha1.WorkerCluster) bool {
				return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionFenced)
			})
		}
	}
}

// startWorker runs jobferry-worker in the worker "embedded" until the test ends.
func (s *scene) startWorker() {
	s.t.Helper()
	file, err := product.Program("jobferry-worker")
	s.ok(err)
	log := filepath.Join(s.t.TempDir(), "log")
	p, err := workertest.Start(file, s.Cluster("embedded").Kubeconfig(), log, "--fence-after="+fenceAfter.String(), "--sync-batch-period=100ms")
	s.ok(err)
	s.t.Cleanup(func() {
		p.Kill()
		if text, err := os.ReadFile(log); s.t.Failed() && err == nil {
			s.t.Logf("log of jobferry-worker:\n%s", text)
		}
	})
}

func (s *scene) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// cutOff makes a network go dark, and heal brings it back.
func (s *scene) cutOff(worker string) { s.Cluster(worker).Proxy().BlackHole() }
func (s *scene) heal(worker string)   { s.Cluster(worker).Proxy().Heal() }

// submitTo creates a Job that begins in one worker, and may continue in the others once it has run
// there.
func (s *scene) submitTo(worker, name string, options ...rigtest.Option) {
	s.t.Helper()
	s.Submit(name, append(options, ferrytest.OnWorker(worker))...)
}

// free lets a Job continue in these workers; in w1 and w2 if none are given. Others may be
// registered by other tests.
func (s *scene) free(name string, workers ...string) {
	s.t.Helper()
	if len(workers) == 0 {
		workers = []string{"w1", "w2"}
	}
	s.Patch(name, selecting("name in ("+strings.Join(workers, ",")+")"))
}

func onClusterLost(policy string) rigtest.Option {
	return func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationOnClusterLost] = policy }
}

// oneByOne lets a Job's Pods run after one another.
func oneByOne(j *batchv1.Job) {
	one := int32(1)
	j.Spec.Parallelism = &one
}

func spec(change func(*batchv1.JobSpec)) rigtest.Option {
	return func(j *batchv1.Job) { change(&j.Spec) }
}

func succeeded(n int32) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return j.Status.Succeeded >= n }
}

func unsuspended(j *batchv1.Job) bool { return j.Spec.Suspend == nil || !*j.Spec.Suspend }

func lost(w *v1alpha1.WorkerCluster) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost)
}
