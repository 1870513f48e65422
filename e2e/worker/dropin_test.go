package worker_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// The tests of this file aren't parallel: others need Jobs without spec.managedBy to be left alone.

const builtInFinalizer = "batch.kubernetes.io/job-tracking"

// In drop-in mode: the built-in's finalizer, its metrics and its queues' names for Jobs without
// spec.managedBy; Jobs of another name have their own, by the same process.
func TestDropInMode(t *testing.T) {
	s := open(t, "worker")
	s.ok(workertest.AddNode(s.Context(), s.Client))
	name := "example.com/" + s.ns
	_, address, _ := s.process(s.cluster.Kubeconfig(), "--drop-in", "--managed-by="+name, "--namespace="+s.ns, "--sync-batch-period="+batch)
	for job, row := range map[string]struct {
		edits     []edit
		finalizer string
	}{
		"job":   {[]edit{bound}, builtInFinalizer},
		"other": {[]edit{bound, rigtest.ManagedBy(name)}, "jobferry.dev/job-tracking"},
	} {
		s.Create(s.cluster, rigtest.Job(s.ns, job, row.edits...))
		s.JobUntil(s.cluster, s.ns, job, active(1))
		pods, err := s.Pods(s.Context(), job)
		s.ok(err)
		if f := pods[0].Finalizers; len(pods) != 1 || len(f) != 1 || f[0] != row.finalizer {
			t.Errorf("%s: %d Pods, finalizers %v", job, len(pods), f)
		}
		s.exit(0, pods...)
		s.JobUntil(s.cluster, s.ns, job, rigtest.Complete)
		s.podUntil(pods[0], func(p *corev1.Pod) bool { return p != nil && len(p.Finalizers) == 0 })
	}
	s.getMatch(address.metrics+"/metrics", regexp.MustCompile(`(?m)^job_controller_jobs_finished_total{[^}]*} 1$`))
	s.getMatch(address.metrics+"/metrics", regexp.MustCompile(`(?m)^jobferry_job_controller_jobs_finished_total{[^}]*} 1$`))
	for _, prefix := range []string{"", "jobferry_"} {
		s.getMatch(address.metrics+"/metrics", regexp.MustCompile(`(?m)^`+prefix+`job_controller_cache_behind_seconds{resource="pods"} 0$`))
	}
	s.getMatch(address.metrics+"/metrics", regexp.MustCompile(`(?m)^workqueue_adds_total{[^}]*name="job"[^}]*} [1-9]`))
}

// builtIn starts the built-in Job controller.
func (s *scene) builtIn() *process.Process {
	s.t.Helper()
	cmd, err := workertest.BuiltIn(s.Context(), s.cluster)
	s.ok(err)
	p, err := process.Start(cmd, filepath.Join(s.t.TempDir(), "log"))
	s.ok(err)
	s.t.Cleanup(p.Kill)
	return p
}

// dropIn starts jobferry-worker in its place, and returns it with its log.
func (s *scene) dropIn() (*process.Process, string) {
	s.t.Helper()
	program, err := product.Program("jobferry-worker")
	s.ok(err)
	log := filepath.Join(s.t.TempDir(), "log")
	p, err := workertest.Start(program, s.cluster.Kubeconfig(), log, "--drop-in", "--namespace="+s.ns)
	s.ok(err)
	s.t.Cleanup(p.Kill)
	return p, log
}

const (
	migrated    = 9  // Jobs
	migratedEnd = 20 // Pods of each
)

// Jobs run while the built-in gives way to jobferry-worker, and that to the built-in again. Beside
// the built-in, jobferry-worker ends, and says why. In the end, each Pod was counted once, and
// there are no more Pods than needed.
func TestMigration(t *testing.T) {
	s := open(t, "worker")
	s.ok(workertest.AddNode(s.Context(), s.Client))
	first := s.builtIn()
	for i := range migrated {
		s.Create(s.cluster, rigtest.Job(s.ns, fmt.Sprintf("job-%d", i), bound, migratedJob(i)))
	}
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	load := pace{ended: sets.New[types.UID]()}
	go s.Serve(ctx, load.decide, func(err error) { t.Errorf("kubelet: %v", err) })
	load.upTo.Store(migrated * 6)
	s.untilCounted(migrated)

	refused, log := s.dropIn()
	if err := refused.Wait(s.Context()); err == nil {
		t.Error("jobferry-worker ended without an error")
	}
	const want = `"kube-controller-manager" has written the status of Job`
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the log has no %s: %v\n%s", want, err, text)
	}

	first.Kill()
	second, log := s.dropIn()
	load.upTo.Store(migrated * 14)
	s.untilCounted(migrated * 12)
	if !second.Runs() {
		text, err := os.ReadFile(log)
		t.Errorf("jobferry-worker has ended: %v\n%s", err, text)
	}
	second.Kill()
	s.builtIn()
	load.upTo.Store(math.MaxInt64)
	for i := range migrated {
		s.checkMigrated(fmt.Sprintf("job-%d", i))
	}
}

// migratedJob has the Job run 2 Pods at a time: in a third of the Jobs with indexes, and in another
// third with indexes of which some fail.
func migratedJob(i int) edit {
	return func(j *batchv1.Job) {
		size(2, migratedEnd)(j)
		if i%3 > 0 {
			indexed(2, migratedEnd)(j)
		}
		if i%3 > 1 {
			perIndex(0)(j)
		}
	}
}

// pace ends up to that many Pods, each as soon as it's seen: so each controller has something to
// do, however long it takes to start.
type pace struct {
	upTo  atomic.Int64
	ended sets.Set[types.UID]
}

// decide has a Pod of each seventh index fail where that starts no other one.
func (l *pace) decide(p corev1.Pod) (code int32, end bool) {
	if l.ended.Has(p.UID) || int64(l.ended.Len()) >= l.upTo.Load() {
		return 0, false
	}
	l.ended.Insert(p.UID)
	if workertest.Index(p)%7 == 3 && p.Annotations[batchv1.JobIndexFailureCountAnnotation] == "0" {
		code = 1
	}
	return code, true
}

// untilCounted waits until the Jobs have that many ended Pods together.
func (s *scene) untilCounted(pods int) {
	s.t.Helper()
	counted := map[types.UID]int{}
	s.Until(rig.Objects(s.Client.BatchV1().RESTClient(), "jobs", s.ns), func(o runtime.Object) bool {
		if j, ok := o.(*batchv1.Job); ok {
			counted[j.UID] = int(j.Status.Succeeded + j.Status.Failed)
		}
		sum := 0
		for _, n := range counted {
			sum += n
		}
		return sum >= pods
	})
}

// checkMigrated waits for the Job's end, and compares its status with its Pods.
func (s *scene) checkMigrated(name string) {
	s.t.Helper()
	job := s.JobUntil(s.cluster, s.ns, name, func(j *batchv1.Job) bool { return rigtest.Complete(j) || rigtest.Failed(j) })
	pods, err := s.Pods(s.Context(), name)
	s.ok(err)
	phases, unfinished := map[corev1.PodPhase]int{}, 0
	for _, p := range pods {
		phases[p.Status.Phase]++
		unfinished += len(p.Finalizers)
	}
	if len(pods) != migratedEnd || int(job.Status.Succeeded) != phases[corev1.PodSucceeded] || int(job.Status.Failed) != phases[corev1.PodFailed] ||
		int(job.Status.Succeeded+job.Status.Failed) != migratedEnd || unfinished > 0 {
		s.t.Errorf("%s: %d Pods, by phase %v, %d finalizers left; counted %d succeeded and %d failed",
			name, len(pods), phases, unfinished, job.Status.Succeeded, job.Status.Failed)
	}
}
