package upgrade_test

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/e2e/chart/charttest"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// submit creates all Jobs, and waits until as many Pods run as can.
func (s *stage) submit() {
	s.t.Helper()
	s.log("%d Jobs are created", len(s.jobs))
	s.kubectl("create", "configmap", settings, "-n", s.ns, "--from-literal=a=b")
	for _, j := range s.jobs {
		s.Create(s.hub, j.Job)
	}
	for _, j := range s.jobs {
		s.JobUntil(s.hub, s.ns, j.Name, func(is *batchv1.Job) bool {
			return rigtest.Running(j.starts)(is) || j.starts == 0 && ferrytest.Suspended(is)
		})
	}
}

// each calls a function for the Jobs of a kind.
func (s *stage) each(k kind, do func(*job)) {
	for _, j := range s.jobs {
		if j.Kind == string(k) {
			do(j)
		}
	}
}

// patch has the user change a Job.
func (s *stage) patch(j *job, deed story.Deed, patch string) {
	s.t.Helper()
	s.acts(j.Name, deed)
	if _, err := s.hub.Client().BatchV1().Jobs(s.ns).Patch(s.Context(), j.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// exit ends the oldest running Pod of a Job of which something holds.
func (s *stage) exit(j *job, code int32, which func(podIn) bool) {
	s.t.Helper()
	var found []podIn
	s.eventually(j.Name+" has such a Pod that runs", func() bool {
		found = s.list(j.Name, func(p podIn) bool { return p.runs() && which(p) })
		return len(found) > 0
	})
	s.exitPod(found[0], code)
	s.eventually("the Pod is seen to end", func() bool {
		return len(s.list(j.Name, func(p podIn) bool { return p.UID == found[0].UID && p.runs() })) == 0
	})
}

func (s *stage) exitPod(p podIn, code int32) {
	s.t.Helper()
	kubelet := workertest.Kubelet{Client: s.Cluster(p.worker).Client(), Namespace: s.ns}
	if err := kubelet.Exit(s.Context(), *p.Pod, code); err != nil {
		s.t.Fatal(err)
	}
}

func anyPod(podIn) bool { return true }

func ofIndex(index string) func(podIn) bool {
	return func(p podIn) bool { return p.Annotations[batchv1.JobCompletionIndexAnnotation] == index }
}

// progress has Jobs make progress, and the hub hear of it.
func (s *stage) progress() {
	s.t.Helper()
	s.log("Jobs make progress")
	for _, j := range s.jobs {
		if j.progresses {
			s.exit(j, 0, anyPod)
			j.succeeded++
		}
	}
	for _, j := range s.jobs {
		if j.progresses {
			s.JobUntil(s.hub, s.ns, j.Name, func(is *batchv1.Job) bool { return is.Status.Succeeded == j.succeeded })
		}
	}
}

// failIndex has index 0 of some Jobs fail for the n-th time.
func (s *stage) failIndex(n int32) {
	s.t.Helper()
	s.log("an index fails for the %d. time", n)
	s.each(perIndex, func(j *job) { s.exit(j, 1, ofIndex("0")) })
	s.each(perIndex, func(j *job) {
		s.JobUntil(s.hub, s.ns, j.Name, func(is *batchv1.Job) bool { return is.Status.Failed == n })
	})
}

// scale has users of elastic Jobs want that many indexes.
func (s *stage) scale(indexes int32) {
	s.t.Helper()
	s.log("elastic Jobs get %d indexes", indexes)
	s.each(elastic, func(j *job) {
		s.patch(j, story.ScaleElastic, fmt.Sprintf(`{"spec": {"completions": %[1]d, "parallelism": %[1]d}}`, indexes))
		s.JobUntil(s.hub, s.ns, j.Name, rigtest.Running(indexes))
	})
}

func (s *stage) suspend(k kind) {
	s.t.Helper()
	s.log("%s Jobs are suspended", k)
	s.each(k, func(j *job) { s.patch(j, story.Suspend, `{"spec": {"suspend": true}}`) })
	s.each(k, func(j *job) {
		s.JobUntil(s.hub, s.ns, j.Name, func(is *batchv1.Job) bool { return ferrytest.Suspended(is) && is.Status.Active == 0 })
	})
}

func (s *stage) resume(k kind) {
	s.t.Helper()
	s.log("%s Jobs are resumed", k)
	s.each(k, func(j *job) { s.patch(j, story.Resume, `{"spec": {"suspend": false}}`) })
	s.each(k, func(j *job) { s.JobUntil(s.hub, s.ns, j.Name, rigtest.Running(2)) })
}

// deleteJobs deletes those Jobs, and doesn't wait.
func (s *stage) deleteJobs(k kind) {
	s.t.Helper()
	s.each(k, func(j *job) {
		s.acts(j.Name, story.Delete)
		background := metav1.DeletePropagationBackground
		if err := s.hub.Client().BatchV1().Jobs(s.ns).Delete(s.Context(), j.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			s.t.Fatal(err)
		}
	})
}

// finish has all Pods succeed until all Jobs have ended, and judges how.
func (s *stage) finish() {
	s.t.Helper()
	s.log("all Jobs end")
	s.eventually("all Jobs end", func() bool {
		var pending []string
		s.do(func(c *checker.Checker, _ time.Duration) { pending = c.Pending() })
		for _, name := range pending {
			for _, p := range s.list(name, podIn.runs) {
				s.exitPod(p, 0)
			}
		}
		return len(pending) == 0
	})
	s.do(func(c *checker.Checker, at time.Duration) { c.CheckEnds(at) })
	s.expectNothing()
	for _, j := range s.jobs {
		if pods := s.list(j.Name, anyPod); len(pods) != j.pods {
			s.t.Errorf("%s had %d Pods, want %d: %s", j.Name, len(pods), j.pods, describe(pods))
		}
	}
}

func describe(pods []podIn) string {
	var words []string
	for _, p := range pods {
		words = append(words, fmt.Sprintf("%s of %s %s", p.Name, p.worker, p.Status.Phase))
	}
	return strings.Join(words, ", ")
}

// leaveNothing deletes all, waits until the workers have nothing of it, and removes them.
func (s *stage) leaveNothing() {
	s.t.Helper()
	s.do(func(c *checker.Checker, _ time.Duration) { c.EndOfRun() })
	s.kubectl("delete", "jobs", "--all", "-n", s.ns, "--timeout=60s")
	for _, name := range []string{builtIn, embedded} {
		s.eventually("nothing is left in "+name, func() bool {
			jobs, err := s.Cluster(name).Client().BatchV1().Jobs(s.ns).List(s.Context(), metav1.ListOptions{})
			return err == nil && len(jobs.Items) == 0
		})
		s.kubectl("delete", "workercluster", name, "--timeout=60s")
		s.kubectl("delete", "secret", name, "-n", charttest.Namespace)
	}
}
