package worker_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestSuspendAndResume(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2))
	pods := s.running(2)
	s.run(pods...)
	started := s.until(active(2)).Status.StartTime
	s.terminateAfter(pods, func() { s.patch(`{"suspend":true}`) })
	job := s.until(all(rigtest.HasCondition(batchv1.JobSuspended), active(0)))
	if c := has(job, batchv1.JobSuspended); c.Reason != "JobSuspended" || c.Message != "Job suspended" || job.Status.StartTime != nil {
		t.Errorf("condition %+v, started %v", c, job.Status.StartTime)
	}
	s.event("Suspended", "Job suspended")
	s.waitUntil(started.Add(2 * time.Second))
	s.patch(`{"suspend":false}`)
	s.exit(0, s.running(2)...)
	job = s.until(rigtest.Complete)
	s.event("Resumed", "Job resumed")
	if !job.Status.StartTime.After(started.Time) || job.Status.Failed != 0 || job.Status.Succeeded != 2 {
		t.Errorf("status %+v", job.Status)
	}
}

func TestCreatedSuspended(t *testing.T) {
	s := begin(t)
	s.start(rigtest.Suspended())
	job := s.until(rigtest.HasCondition(batchv1.JobSuspended))
	if job.Status.StartTime != nil || len(s.pods(every)) != 0 {
		t.Errorf("status %+v", job.Status)
	}
}

// The template may be edited while the Job is suspended; its next Pods have the new one.
func TestTemplateEditWhileSuspended(t *testing.T) {
	s := begin(t)
	s.start(rigtest.Suspended(), unbound)
	s.until(rigtest.HasCondition(batchv1.JobSuspended))
	s.patch(`{"template":{"metadata":{"labels":{"pool":"blue"}},"spec":{"nodeSelector":{"pool":"blue"}}}}`)
	s.patch(`{"suspend":false}`)
	if p := s.running(1)[0]; p.Labels["pool"] != "blue" || p.Spec.NodeSelector["pool"] != "blue" {
		t.Errorf("labels %v, node selector %v", p.Labels, p.Spec.NodeSelector)
	}
}

func TestElasticIndexedJob(t *testing.T) {
	s := begin(t)
	s.start(indexed(2, 2))
	s.exit(0, s.running(2)[0])
	s.until(func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == "0" })
	s.patch(`{"parallelism":4,"completions":4}`)
	pods := s.running(3)
	s.exit(0, pods[2]) // index 3
	s.until(func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == "0,3" })
	s.patch(`{"parallelism":2,"completions":2}`)
	job := s.until(func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == "0" && j.Status.Active == 1 })
	if job.Status.Succeeded != 1 || job.Status.Failed != 0 {
		t.Errorf("status %+v", job.Status)
	}
	s.terminate() // index 2
	s.exit(0, pods[0])
	if job := s.until(rigtest.Complete); job.Status.CompletedIndexes != "0,1" {
		t.Errorf("status %+v", job.Status)
	}
}

func TestParallelismChanges(t *testing.T) {
	s := begin(t)
	s.start(size(1, 5))
	s.run(s.running(1)...)
	s.patch(`{"parallelism":3}`)
	pods := s.running(3)
	s.run(pods...)
	s.terminateAfter(nil, func() { s.patch(`{"parallelism":0}`) })
	s.terminateUntilGone(pods)
	job := s.until(active(0))
	if job.Status.Failed != 0 || finishedWell(job) {
		t.Errorf("status %+v", job.Status)
	}
	s.patch(`{"parallelism":5}`)
	s.exit(0, s.running(5)...)
	s.until(rigtest.Complete)
}

func finishedWell(j *batchv1.Job) bool { return has(j, batchv1.JobComplete) != nil }

// Of surplus Pods, those go first that have got less far.
func TestSurplusDeletionOrder(t *testing.T) {
	s := begin(t)
	s.start(size(4, 9))
	pods := s.running(4)
	s.run(pods[0], pods[2])
	s.until(func(j *batchv1.Job) bool { return *j.Status.Ready == 2 })
	s.patch(`{"parallelism":2}`)
	s.terminateUntilGone([]corev1.Pod{pods[1], pods[3]})
	s.until(active(2))
	for _, p := range []corev1.Pod{pods[0], pods[2]} {
		s.podUntil(p, func(p *corev1.Pod) bool { return p != nil && p.DeletionTimestamp == nil })
	}
}

// A quota that is full is found out by few requests: batches start with one Pod.
func TestCreationBatches(t *testing.T) {
	s := begin(t)
	_, err := s.Client.CoreV1().ResourceQuotas(s.ns).Create(s.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	s.ok(err)
	s.start(size(200, 200))
	s.event("FailedCreate", "Error creating: pods \"job-")
	requests, err := s.cluster.Requests()
	s.ok(err)
	creates := rig.CountBy(requests, func(r rig.Request) string { return fmt.Sprint(r.Verb, " ", r.Object.Resource, " ", r.Object.Namespace) })
	if n := creates["create pods "+s.ns]; n < 1 || n > 5 {
		t.Errorf("%d Pods were tried to be created", n)
	}
	s.until(active(0))
	s.patch(`{"parallelism":1}`)
	s.ok(s.Client.CoreV1().ResourceQuotas(s.ns).Delete(s.Context(), "none", metav1.DeleteOptions{}))
	s.running(1)
}

// The whole Job in one: more Pods than a sync may create, list or release.
func TestManyPods(t *testing.T) {
	s := begin(t)
	const n = 600
	s.start(indexed(n, n))
	pods := s.running(n)
	for _, p := range pods {
		s.exit(0, p)
	}
	job := s.until(rigtest.Complete)
	if job.Status.Succeeded != n || job.Status.CompletedIndexes != fmt.Sprintf("0-%d", n-1) || len(s.pods(every)) != n {
		data, _ := json.Marshal(job.Status)
		t.Errorf("status %s", data)
	}
}
