package groups_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
)

// Tests that share a manager, and no JobSet.
func TestJobSets(t *testing.T) {
	s := open(t)
	s.RunManager()
	s.register()
	for name, test := range map[string]func(*scene){
		"ADriverAndItsWorkers": driverAndWorkers,
		"Restarted":            restarted,
		"SuspendedAndResumed":  suspendedAndResumed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(open(t))
		})
	}
}

// pairJobs are the Jobs of a driver and its workers.
var pairJobs = []string{"pair-driver-0", "pair-workers-0", "pair-workers-1", "pair-workers-2"}

// pair is a driver and its workers, which start once it's ready.
func pair() *jobset.JobSet {
	return jobSet("pair", replicated("driver", 1, forever), replicated("workers", 3, forever, onceReady("driver")))
}

// A JobSet as it would be in one cluster: its Jobs are in one worker, and find each other there.
func driverAndWorkers(s *scene) {
	s.create(pair())
	jobs := s.each(pairJobs, running)
	worker := s.together(jobs)
	s.jobSetUntil("pair", ready("workers", 3))
	s.findEachOther(worker, jobs)
	for _, name := range workers {
		s.lacksJobSet(name)
	}
	s.finish(jobs)
	if at := s.together(s.completed("pair", pairJobs)); at != worker {
		s.t.Errorf("the Jobs ended in worker %s, and ran in worker %s", at, worker)
	}
}

// findEachOther checks that the Pods of some Jobs have names, and the worker has the Service by
// which the names resolve.
func (s *scene) findEachOther(worker string, jobs []*batchv1.Job) {
	s.t.Helper()
	var selector map[string]string
	s.Until(s.serviceIn(worker, "pair"), func(o runtime.Object) bool {
		service, ok := o.(*corev1.Service)
		if ok {
			selector = service.Spec.Selector
		}
		return ok && service.Spec.ClusterIP == corev1.ClusterIPNone
	})
	for _, job := range jobs {
		pod := s.podOf(job)
		if pod.Spec.Hostname != job.Name+"-0" || pod.Spec.Subdomain != "pair" {
			s.t.Errorf("Pod %s is called %s.%s", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain)
		}
		for key, value := range selector {
			if pod.Labels[key] != value {
				s.t.Errorf("the Service selects %s=%s, Pod %s has %q", key, value, pod.Name, pod.Labels[key])
			}
		}
	}
	if len(selector) == 0 {
		s.t.Error("the Service selects nothing")
	}
}

// A Pod fails, and with it its Job: JobSet makes all Jobs anew, once, and they're together again.
func restarted(s *scene) {
	js := pair()
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1}
	s.create(js)
	jobs := s.each(pairJobs, running)
	s.together(jobs)
	s.fail(jobs[2])
	s.jobSetUntil("pair", func(js *jobset.JobSet) bool { return js.Status.Restarts == 1 })
	again := s.each(pairJobs, ferrytest.All(attempt("1"), running))
	worker := s.together(again)
	s.finish(again)
	if at := s.together(s.completed("pair", pairJobs)); at != worker {
		s.t.Errorf("the Jobs ended in worker %s, and ran in worker %s", at, worker)
	}
	if js := s.jobSetUntil("pair", is(jobset.JobSetCompleted)); js.Status.Restarts != 1 {
		s.t.Errorf("%d restarts", js.Status.Restarts)
	}
}

// A JobSet that is created suspended, resumed, suspended and resumed has no Pod meanwhile, and its
// Jobs are together each time.
func suspendedAndResumed(s *scene) {
	js := jobSet("pair", replicated("driver", 1, forever), replicated("workers", 3, forever))
	js.Spec.Suspend = ptr.To(true)
	s.create(js)
	s.jobSetUntil("pair", is(jobset.JobSetSuspended))
	s.each(pairJobs, ferrytest.Suspended)
	for _, worker := range workers {
		if pods := s.Pods(s.Cluster(worker)); len(pods) > 0 {
			s.t.Errorf("worker %s has %d Pods of a JobSet that was created suspended", worker, len(pods))
		}
	}
	s.patch("pair", `{"spec":{"suspend":false}}`)
	worker := s.together(s.each(pairJobs, running))
	ran := s.Pods(s.Cluster(worker))
	s.patch("pair", `{"spec":{"suspend":true}}`)
	s.jobSetUntil("pair", is(jobset.JobSetSuspended))
	s.each(pairJobs, ferrytest.Suspended)
	s.PodsGone(worker, ran)
	s.patch("pair", `{"spec":{"suspend":false}}`)
	jobs := s.each(pairJobs, running)
	s.together(jobs)
	s.finish(jobs)
	s.together(s.completed("pair", pairJobs))
	if js := s.jobSetUntil("pair", is(jobset.JobSetCompleted)); js.Status.Restarts != 0 || is(jobset.JobSetSuspended)(js) {
		s.t.Errorf("the JobSet's status is %+v", js.Status)
	}
}
