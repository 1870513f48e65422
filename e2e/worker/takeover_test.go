package worker_test

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

func (s *scene) late() *workertest.Late {
	s.t.Helper()
	s.ok(workertest.AddNode(s.Context(), s.Client))
	late, err := workertest.NewLate(s.cluster.RESTConfig())
	s.ok(err)
	s.t.Cleanup(func() { _ = late.Close() }) // the connections of a killed process
	return late
}

// podsBefore is the list of all Pods as it was before this version of one of them.
func (s *scene) podsBefore(p corev1.Pod) []byte {
	s.t.Helper()
	version, err := strconv.Atoi(p.ResourceVersion)
	s.ok(err)
	list, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").Param("resourceVersion", strconv.Itoa(version-1)).
		Param("resourceVersionMatch", "Exact").SetHeader("Accept", "application/json").DoRaw(s.Context())
	s.ok(err)
	return list
}

// The API server's watch cache has a Pod that is still tracked, which a leader has counted and
// untracked. The next leader lists Pods consistently, so that it counts each Pod once, also while
// its watch brings nothing. While it didn't lead, it read no Pods.
func TestTakeoverWithALateCache(t *testing.T) {
	t.Parallel()
	s := open(t, "worker")
	late := s.late()
	name := "example.com/" + s.ns
	args := []string{"--leader-elect=true", "--namespace=" + s.ns, "--managed-by=" + name, "--sync-batch-period=" + batch}
	first := s.controller(nil, args...)
	s.start(rigtest.ManagedBy(name), size(1, 2))
	s.exit(0, s.running(1)...)
	s.until(all(counted(1, 0), active(1)))
	untracked := s.pods(workertest.Ended)
	late.FallBehind(s.podsBefore(untracked[0]))

	_, address, _ := s.process(s.kubeconfig(late), args...)
	s.get(address.health+"/readyz", "ok")
	if n := late.Watches(); n > 0 {
		t.Errorf("%d reads of all Pods by a process that doesn't lead", n)
	}
	s.ok(first.Stop())
	s.get(address.metrics+"/metrics", `jobferry_job_controller_cache_behind_seconds{resource="pods"} 0`)
	last := s.pods(workertest.Active)
	s.exit(0, last...)
	if job := s.until(active(1)); job.Status.Succeeded != 1 || len(last) != 1 {
		t.Errorf("synced by a late cache: %+v", job.Status)
	}
	late.CatchUp()
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 2 || len(s.pods(every)) != 2 {
		t.Errorf("status %+v, %d Pods", job.Status, len(s.pods(every)))
	}
}

// The API server creates a Pod and its answer is lost, while the watch of Pods brings nothing: the
// controller looks for the Pod, and doesn't create another one.
func TestALostAnswerCreatesNoSecondPod(t *testing.T) {
	t.Parallel()
	s := open(t, "worker")
	late := s.late()
	name := "example.com/" + s.ns
	s.controller(late, "--managed-by="+name, "--sync-batch-period="+batch)
	s.Create(s.cluster, rigtest.Job(s.ns, "before", rigtest.ManagedBy(name), bound))
	s.JobUntil(s.cluster, s.ns, "before", active(1)) // so its watches are open

	late.FallBehind(nil)
	late.LoseAnswer()
	s.start(rigtest.ManagedBy(name), indexed(2, 2))
	<-late.Lost
	pods := s.running(2)
	if all := s.pods(every); len(all) != 2 {
		t.Errorf("%d Pods for 2 indexes", len(all))
	}
	late.CatchUp()
	s.exit(0, pods...)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 2 || len(s.pods(every)) != 2 {
		t.Errorf("status %+v, %d Pods", job.Status, len(s.pods(every)))
	}
}
