package worker_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// scenario is a Job and how its Pods end.
type scenario struct {
	edits    []edit
	exitCode func(corev1.Pod) int32
	// during is what happens before the first Pod may end; it returns when the controller has seen
	// that.
	during func(*scene)
}

var scenarios = map[string]scenario{
	"one index needs a retry": {
		edits: []edit{indexed(2, 3), perIndex(1)},
		exitCode: func(p corev1.Pod) int32 {
			if workertest.Index(p) == 1 && p.Annotations[batchv1.JobIndexFailureCountAnnotation] == "0" {
				return 1
			}
			return 0
		},
	},
	"too many failures": {
		edits:    []edit{size(2, 2), rigtest.BackoffLimit(0), policy(onExit(batchv1.PodFailurePolicyActionIgnore, 9))},
		exitCode: func(corev1.Pod) int32 { return 1 },
		during:   func(s *scene) { s.until(active(2)) },
	},
	"suspended and resumed": {
		edits:    []edit{size(2, 3), func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) }},
		exitCode: func(corev1.Pod) int32 { return 0 },
		during: func(s *scene) {
			s.until(active(2))
			s.patch(`{"suspend":true}`)
			s.until(all(rigtest.HasCondition(batchv1.JobSuspended), active(0)))
			s.patch(`{"suspend":false}`)
		},
	},
}

// The controller is killed after each of its writes in turn and started again. The end is the same
// each time.
func TestKilledAfterAnyWrite(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want string
			var writes int
			t.Run("never killed", func(t *testing.T) { want, writes = scenario.run(t, -1) })
			for n := range writes {
				t.Run(fmt.Sprintf("after %d of %d", n, writes), func(t *testing.T) {
					t.Parallel()
					if got, _ := scenario.run(t, n); got != want {
						t.Errorf("the end is\n%s\nwant\n%s", got, want)
					}
				})
			}
		})
	}
}

// run runs the scenario with a controller that is killed after that many writes, and describes its
// end.
func (st scenario) run(t *testing.T, writes int) (end string, passed int) {
	s := open(t, "worker")
	s.ok(workertest.AddNode(s.Context(), s.Client))
	gate, err := workertest.NewGate(s.cluster.RESTConfig(), writes)
	s.ok(err)
	defer gate.Close()
	name := "example.com/" + s.ns
	args := []string{"--managed-by=" + name, "--pod-failure-backoff=1ms", "--sync-batch-period=" + batch, "--tracking-finalizer=jobferry.dev/job-tracking"}
	controller := s.controller(gate, args...)

	acted := make(chan struct{})
	go s.Serve(s.Context(), func(p corev1.Pod) (int32, bool) {
		select {
		case <-acted:
			return st.exitCode(p), true
		default:
			return 0, false
		}
	}, func(err error) { t.Error(err) })
	s.start(append(st.edits, rigtest.ManagedBy(name))...)
	ended, restarted := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case <-gate.Closed:
			controller.Kill()
			controller = s.controller(nil, args...)
			restarted <- true
		case <-ended:
			restarted <- false
		}
	}()
	if st.during != nil {
		st.during(s)
	}
	close(acted)
	job := s.until(func(j *batchv1.Job) bool { return rigtest.Complete(j) || rigtest.Failed(j) })
	for _, p := range s.pods(every) {
		s.podUntil(p, func(p *corev1.Pod) bool { return !tracked(p) })
	}
	close(ended)
	if !<-restarted && writes >= 0 {
		// How many writes a Job takes depends on how many of its Pods one status tells of.
		t.Logf("this time the Job ended within %d writes: nothing was killed", gate.Passed())
	}
	controller.Kill()
	return describe(job), gate.Passed()
}

// proxy is a workertest.Gate or Late.
type proxy interface{ WriteKubeconfig(file string) error }

// kubeconfig returns the file for a proxy.
func (s *scene) kubeconfig(p proxy) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.ok(p.WriteKubeconfig(file))
	return file
}

// controller starts jobferry-worker behind a proxy, or without one. It's killed after the test.
func (s *scene) controller(p proxy, args ...string) *process.Process {
	program, err := product.Program("jobferry-worker")
	s.ok(err)
	kubeconfig := s.cluster.Kubeconfig()
	if p != nil {
		kubeconfig = s.kubeconfig(p)
	}
	c, err := workertest.Start(program, kubeconfig, os.DevNull, args...)
	s.ok(err)
	s.t.Cleanup(c.Kill)
	return c
}

// describe is the Job's status without its times.
func describe(j *batchv1.Job) string {
	conditions := slices.SortedFunc(slices.Values(j.Status.Conditions), func(a, b batchv1.JobCondition) int { return cmp.Compare(a.Type, b.Type) })
	var b strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&b, "%s=%s %s %q\n", c.Type, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintf(&b, "active %d, ready %d, terminating %d, succeeded %d (%s), failed %d (%s)", j.Status.Active, *j.Status.Ready, *j.Status.Terminating,
		j.Status.Succeeded, j.Status.CompletedIndexes, j.Status.Failed, ptr.Deref(j.Status.FailedIndexes, "none"))
	return b.String()
}
