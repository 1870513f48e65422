package chart_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
	"github.com/jobferry/jobferry/e2e/chart/permissions"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// jobferry-worker, with exactly the rights that its chart gives, runs Jobs in a cluster without a
// Job controller: to their end, suspended, retried, expired, handed over to another controller.
// Nothing is refused; every right is used.
func TestWorkerWithTheChartsRights(t *testing.T) {
	r := newRelease(t, "bare", workerChart)
	r.install(chartDir(workerChart), "--set", "config.syncBatchPeriod=100ms,config.podFailureBackoff=1s")
	r.hasPriority("jobferry-worker")
	metrics := charttest.FreeAddress(t)
	first := r.run("jobferry-worker", "--metrics-bind-address="+string(metrics), "--health-probe-bind-address="+string(charttest.FreeAddress(t)))

	ns := r.Namespace(r.cluster)
	ours := rigtest.ManagedBy("jobferry.dev/worker")
	r.Create(r.cluster, rigtest.Job(ns, "retried", ours, rigtest.FailFirst(1)))
	if job := r.JobUntil(r.cluster, ns, "retried", rigtest.Complete); job.Status.Failed != 1 {
		t.Errorf("%d failures, want 1", job.Status.Failed)
	}
	r.Create(r.cluster, rigtest.Job(ns, "suspended", ours, rigtest.RunForever()))
	r.JobUntil(r.cluster, ns, "suspended", rigtest.Running(1))
	r.kubectl("patch", "job", "suspended", "-n", ns, "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	r.JobUntil(r.cluster, ns, "suspended", rigtest.HasCondition(batchv1.JobSuspended))
	r.Create(r.cluster, rigtest.Job(ns, "expires", ours, func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = new(int32) }))
	r.JobGone(r.cluster, ns, "expires")
	r.adopts(ns, ours)
	r.scrapersAreAsked(metrics)

	second := r.run("jobferry-worker", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	if err := first.Stop(); err != nil {
		t.Errorf("asked to end, the controller ended with %v", err)
	}
	r.Create(r.cluster, rigtest.Job(ns, "next", ours))
	r.JobUntil(r.cluster, ns, "next", rigtest.Complete)
	if err := second.Stop(); err != nil {
		t.Errorf("asked to end, the second controller ended with %v", err)
	}
	checkRights(t, r.cluster, "jobferry-worker", permissions.Worker, permissions.MetricsAuth)
}

// adopts has a Job take over a Pod that lost its owner.
func (r *release) adopts(ns string, ours rigtest.Option) {
	r.t.Helper()
	r.Create(r.cluster, rigtest.Job(ns, "adopts", ours, rigtest.RunForever()))
	r.JobUntil(r.cluster, ns, "adopts", rigtest.Running(1))
	orphan := strings.TrimSpace(r.kubectl("get", "pods", "-n", ns, "-l", "job-name=adopts", "-o", "name"))
	r.kubectl("patch", orphan, "-n", ns, "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`)
	r.kubectl("wait", orphan, "-n", ns, "--for=jsonpath={.metadata.ownerReferences[0].name}=adopts", "--timeout=30s")
}

// In the built-in's place, with its account and the rights that the chart gives to that:
// jobferry-worker runs the built-in's Jobs and its own, and looks for another Job controller.
// Nothing is refused.
func TestDropInAsTheBuiltInsAccount(t *testing.T) {
	const account = "system:serviceaccount:kube-system:job-controller"
	r := newRelease(t, "bare", workerChart)
	r.install(chartDir(workerChart), "--set", "dropIn=true,managedBy={jobferry.dev/worker},impersonate="+account+",config.syncBatchPeriod=100ms")
	process := r.run("jobferry-worker", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	ns := r.Namespace(r.cluster)
	r.Create(r.cluster, rigtest.Job(ns, "builtin"))
	r.Create(r.cluster, rigtest.Job(ns, "own", rigtest.ManagedBy("jobferry.dev/worker")))
	r.JobUntil(r.cluster, ns, "builtin", rigtest.Complete)
	r.JobUntil(r.cluster, ns, "own", rigtest.Complete)
	if err := process.Stop(); err != nil {
		t.Errorf("asked to end, the controller ended with %v", err)
	}
	requests, err := r.cluster.Requests()
	if err != nil {
		t.Fatal(err)
	}
	probes, pods := 0, 0
	for _, request := range requests {
		switch {
		case request.Impersonated.Username != account:
			continue
		case request.Object.Namespace != ns && request.Object.Namespace != "" && request.Object.Namespace != namespace:
			// What an earlier test left is refused Pods, for its namespace is being deleted.
			continue
		case request.Response.Code == 403:
			t.Errorf("refused: %s %s", request.Verb, request.URI)
		case request.Verb == "get" && request.Object.Name == "jobferry-worker-probe" && request.Response.Code == 200:
			probes++
		case request.Verb == "create" && request.Object.Resource == "pods" && request.Object.Namespace == ns:
			pods++
		}
	}
	if probes == 0 || pods != 2 {
		t.Errorf("%d looks at the probe, %d Pods created by the built-in's account", probes, pods)
	}
}
