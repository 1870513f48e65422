package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestNonParallelJob(t *testing.T) {
	s := begin(t)
	s.start()
	s.exit(0, s.running(1)...)
	job := s.until(rigtest.Complete)
	if job.Status.Succeeded != 1 || job.Status.CompletionTime == nil || job.Status.StartTime == nil {
		t.Errorf("status %+v", job.Status)
	}
	if c := has(job, batchv1.JobComplete); c.Reason != "CompletionsReached" || c.Message != "Reached expected number of succeeded pods" {
		t.Errorf("condition %+v", c)
	}
	s.event("SuccessfulCreate", "Created pod: job-")
	s.event("Completed", "Job completed")
}

func TestFixedCompletionCount(t *testing.T) {
	s := begin(t)
	s.start(size(2, 3))
	pods := s.running(2)
	s.exit(0, pods...)
	s.until(counted(2, 0))
	s.exit(0, s.running(1)...)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 3 || len(s.pods(every)) != 3 {
		t.Errorf("succeeded %d with %d Pods", job.Status.Succeeded, len(s.pods(every)))
	}
}

func every(corev1.Pod) bool { return true }

// Completions unset: the first success means that the work is done. The others run on, no new one
// is started.
func TestWorkQueue(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](3) })
	pods := s.running(3)
	s.exit(0, pods[0])
	s.until(counted(1, 0))
	s.exit(1, pods[1])
	s.until(all(counted(1, 1), active(1)))
	s.exit(0, pods[2])
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 2 || job.Status.Failed != 1 || len(s.pods(every)) != 3 {
		t.Errorf("status %+v", job.Status)
	}
}

// Annotation, label, hostname, environment and name of an Indexed Job's Pods.
func TestIndexedPods(t *testing.T) {
	s := begin(t)
	s.start(indexed(2, 2), func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.org/init"}}
	})
	for i, p := range s.running(2) {
		text := fmt.Sprint(i)
		const key = "batch.kubernetes.io/job-completion-index"
		if p.Annotations[key] != text || p.Labels[key] != text || p.Spec.Hostname != "job-"+text || !strings.HasPrefix(p.Name, "job-"+text+"-") {
			t.Errorf("index %d has the Pod %+v", i, p.ObjectMeta)
		}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if len(c.Env) != 1 || c.Env[0].Name != "JOB_COMPLETION_INDEX" || c.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.labels['"+key+"']" {
				t.Errorf("container %s of index %d has the environment %+v", c.Name, i, c.Env)
			}
		}
		s.exit(0, p)
	}
	if job := s.until(rigtest.Complete); job.Status.CompletedIndexes != "0,1" {
		t.Errorf("completed indexes %q", job.Status.CompletedIndexes)
	}
}

// The first success of an index counts, and a second Pod of it is surplus.
func TestSecondPodOfAnIndexGoes(t *testing.T) {
	s := begin(t)
	s.start(indexed(2, 2))
	pods := s.running(2)
	s.run(pods...)
	twin := s.orphanLike(pods[0])
	s.podUntil(twin, func(p *corev1.Pod) bool { return p == nil || p.DeletionTimestamp != nil })
	s.terminate()
	s.exit(0, pods...)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 2 || job.Status.Failed != 0 {
		t.Errorf("status %+v", job.Status)
	}
}

// ready and terminating in the status.
func TestReadyAndTerminatingCounts(t *testing.T) {
	s := begin(t)
	s.start(size(3, 3))
	pods := s.running(3)
	s.run(pods[:2]...)
	s.until(func(j *batchv1.Job) bool { return *j.Status.Ready == 2 && *j.Status.Terminating == 0 })
	s.deletePod(pods[0])
	s.until(func(j *batchv1.Job) bool {
		return *j.Status.Ready == 1 && *j.Status.Terminating == 1 && j.Status.Failed == 1
	})
	s.terminate()
	s.until(func(j *batchv1.Job) bool { return *j.Status.Terminating == 0 })
	s.exit(0, s.running(3)...)
	s.until(rigtest.Complete)
}

// Terminal conditions come in two steps, the second only when all Pods have ended.
func TestFailureTargetFirst(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2), rigtest.BackoffLimit(0))
	pods := s.running(2)
	s.run(pods...)
	s.exit(1, pods[0])
	job := s.until(rigtest.HasCondition(batchv1.JobFailureTarget))
	if has(job, batchv1.JobFailed) != nil {
		t.Error("Failed came with FailureTarget")
	}
	s.podUntil(pods[1], func(p *corev1.Pod) bool { return p == nil || p.DeletionTimestamp != nil })
	job = s.until(func(j *batchv1.Job) bool { return *j.Status.Terminating == 1 && counted(0, 2)(j) })
	if has(job, batchv1.JobFailed) != nil {
		t.Error("Failed although a Pod hasn't ended")
	}
	s.terminate()
	job = s.failedFor("BackoffLimitExceeded")
	if job.Status.Active+*job.Status.Ready+*job.Status.Terminating != 0 || job.Status.CompletionTime != nil {
		t.Errorf("status %+v", job.Status)
	}
	s.event("BackoffLimitExceeded", "Job has reached the specified backoff limit")
	s.event("SuccessfulDelete", "Deleted pod: "+pods[1].Name)
}

func TestSuccessCriteriaMetFirst(t *testing.T) {
	s := begin(t)
	s.start()
	w, err := s.Client.BatchV1().Jobs(s.ns).Watch(s.Context(), onlyJob)
	s.ok(err)
	defer w.Stop()
	s.exit(0, s.running(1)...)
	for e := range w.ResultChan() {
		job := e.Object.(*batchv1.Job)
		if has(job, batchv1.JobSuccessCriteriaMet) != nil {
			if has(job, batchv1.JobComplete) != nil {
				t.Error("Complete came with SuccessCriteriaMet")
			}
			break
		}
	}
	s.until(rigtest.Complete)
}

// Whatever the tests create, no Pod of a finished Job stays tracked.
func TestFinishedJobLeavesNoFinalizer(t *testing.T) {
	s := begin(t)
	s.start(size(3, 3))
	pods := s.running(3)
	s.exit(0, pods...)
	s.until(rigtest.Complete)
	for _, p := range s.pods(every) {
		if tracked(&p) {
			t.Errorf("Pod %s still has %v", p.Name, p.Finalizers)
		}
	}
}
