package upgrade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
	"github.com/jobferry/jobferry/e2e/chart/deploy"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

const (
	hubChart    = "jobferry"
	workerChart = "jobferry-worker"
	manager     = "jobferry-manager"
	controller  = "jobferry-worker"
	plugin      = "kubectl-jobferry"
)

// stage is a hub with two workers, on which versions of Jobferry come and go while Jobs run.
type stage struct {
	*rigtest.Fixture
	*witness
	t    *testing.T
	hub  *rig.Cluster
	ns   string
	jobs []*job
	// running are the manager and the embedded Job controller.
	running map[string]charttest.Process
}

// kubernetesBefore has no MutatingAdmissionPolicy, and nothing routes the hub to a webhook.
const values = "carry.kinds={ConfigMap},config.workerProbeInterval=1s,config.logFormat=text,admission.mode=Off"

// newStage is without any version yet.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{Fixture: rigtest.For(t), t: t, running: map[string]charttest.Process{}}
	s.Allow(20 * time.Minute)
	s.hub = s.Cluster(hubName)
	s.ns = s.LabelledNamespace(ferrytest.Dispatched, s.hub)
	s.jobs = jobsOf(s.ns, *copies)
	s.witness = watchAll(t, s.ns, s.jobs, s.hub, s.Cluster(builtIn), s.Cluster(embedded))
	return s
}

// log prints what happens next, and when.
func (s *stage) log(format string, arguments ...any) {
	s.t.Helper()
	s.t.Logf("%5.1fs "+format, append([]any{time.Since(s.began).Seconds()}, arguments...)...)
}

// kubectl runs kubectl on the hub.
func (s *stage) kubectl(args ...string) string {
	s.t.Helper()
	return s.Kubectl(s.hub, "", args...)
}

// installHub installs or upgrades the chart of the hub as docs/how-to/operate.md says, and replaces
// the manager, as the Deployment's rollout does: the new one starts before the old one ends.
func (s *stage) installHub(v version, args ...string) {
	s.t.Helper()
	s.helm(s.hub, hubChart, v, args...)
	api := charttest.FreeAddress(s.t)
	s.replace(manager, charttest.Run(s.t, s.hub, v.program(manager), "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--subresources-bind-address="+string(api)))
	if err := deploy.Aggregate(s.t.Context(), s.hub, string(api)); err != nil {
		s.t.Fatal(err)
	}
}

// installWorker does the same for jobferry-worker.
func (s *stage) installWorker(v version, args ...string) {
	s.t.Helper()
	worker := s.Cluster(embedded)
	s.helm(worker, workerChart, v, args...)
	s.replace(controller, charttest.Run(s.t, worker, v.program(controller), "--metrics-bind-address=0", "--health-probe-bind-address=0"))
}

func (s *stage) helm(c *rig.Cluster, chart string, v version, args ...string) {
	s.t.Helper()
	s.log("helm upgrade %s to %s", chart, v.name)
	charttest.HelmIn(s.t, c, append([]string{"upgrade", chart, v.chart(chart), "--install", "--create-namespace", "--reset-then-reuse-values"}, args...)...)
}

func (s *stage) replace(name string, by charttest.Process) {
	s.t.Helper()
	s.stop(name)
	s.running[name] = by
}

// stop asks a program to end, if it runs.
func (s *stage) stop(name string) {
	s.t.Helper()
	if old, runs := s.running[name]; runs {
		delete(s.running, name)
		if err := old.Stop(); err != nil {
			s.t.Errorf("asked to end, %s ended with %v", name, err)
		}
	}
}

// register makes the clusters workers.
func (s *stage) register() {
	s.t.Helper()
	s.log("the workers are registered")
	for _, worker := range []struct{ name, jobController string }{{builtIn, "BuiltIn"}, {embedded, "Embedded"}} {
		s.Kubectl(s.hub, fmt.Sprintf(`{"apiVersion": "jobferry.dev/v1alpha1", "kind": "WorkerCluster",
			"metadata": {"name": %[1]q, "labels": {"name": %[1]q}},
			"spec": {"kubeconfigSecret": %[1]q, "jobController": %[2]q, "carry": ["ConfigMap"]}}`, worker.name, worker.jobController), "create", "-f", "-")
		s.kubectl("create", "secret", "generic", worker.name, "-n", charttest.Namespace, "--from-file=kubeconfig="+s.Cluster(worker.name).Kubeconfig())
		s.kubectl("label", "secret", worker.name, "-n", charttest.Namespace, "jobferry.dev/worker-cluster=true")
	}
	for _, name := range []string{builtIn, embedded} {
		s.kubectl("wait", "--for=condition=Ready", "workercluster/"+name, "--timeout=60s")
		s.kubectl("wait", "--for=condition=Schedulable", "workercluster/"+name, "--timeout=60s")
	}
}

// copiesOf are the UIDs of the copies of the carried ConfigMap.
func (s *stage) copiesOf(name string) string {
	s.t.Helper()
	var uids []string
	for _, worker := range []string{builtIn, embedded} {
		copied, err := s.Cluster(worker).Client().CoreV1().ConfigMaps(s.ns).Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		uids = append(uids, string(copied.UID))
	}
	return strings.Join(uids, " ")
}

const pollEvery = 50 * time.Millisecond

// eventually waits until something holds, and fails the test if the time is up.
func (s *stage) eventually(what string, holds func() bool) {
	s.t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-s.Context().Done():
			s.t.Fatalf("it never is that %s", what)
		}
	}
}
