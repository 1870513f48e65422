package dispatch_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// What a user changes in a Job on the hub happens in the worker, and shows on the hub.
func TestEditsOnTheHub(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"suspend and resume while running", suspendAndResume},
		{"created suspended: waits on the hub", createdSuspended},
		{"edited before it is placed", editedBeforePlacement},
		{"parallelism", parallelism},
		{"elastic Indexed Job", elasticIndexed},
		{"scheduling directives while suspended", schedulingDirectives},
		{"Pod resources while suspended", podResources},
		{"activeDeadlineSeconds", activeDeadline},
		{"backoffLimit", backoffLimit},
		{"labels and annotations", metadata},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); test.run(t) })
	}
}

const (
	suspend = `{"spec":{"suspend":true}}`
	resume  = `{"spec":{"suspend":false}}`
)

func suspendAndResume(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(3), rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	before := f.MirrorUntil(worker, "job", rigtest.Running(3))
	f.HubJobUntil("job", rigtest.Running(3))

	f.Patch("job", suspend)
	stopped := f.HubJobUntil("job", ferrytest.All(ferrytest.Suspended, noPods))
	if stopped.Status.StartTime != nil {
		t.Errorf("suspended, but has the startTime %s", stopped.Status.StartTime)
	}
	f.MirrorUntil(worker, "job", ferrytest.All(ferrytest.Suspended, noPods))

	f.Patch("job", resume)
	again := f.HubJobUntil("job", rigtest.Running(3))
	if ferrytest.Suspended(again) || again.Status.StartTime == nil {
		t.Errorf("resumed, but the status is %+v", again.Status)
	}
	if at := ferrytest.ClusterOf(again); at != worker {
		t.Errorf("moved from %s to %s", worker, at)
	}
	if after := f.MirrorUntil(worker, "job", ferrytest.Exists); after.UID != before.UID {
		t.Error("the mirror was made anew")
	}
}

func noPods(j *batchv1.Job) bool {
	return j.Status.Active == 0 && ptr.Deref(j.Status.Ready, 0) == 0 && ptr.Deref(j.Status.Terminating, 0) == 0
}

func createdSuspended(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Suspended())
	job := f.HubJobUntil("job", ferrytest.Suspended)
	f.EventUntil("job", "Suspended", "")
	if at := ferrytest.ClusterOf(job); at != "" {
		t.Errorf("a suspended Job was placed on %s", at)
	}
	f.Patch("job", resume)
	f.LeaveWorker(f.AssignedWorker("job"))
	if done := f.HubJobUntil("job", rigtest.Complete); ferrytest.Suspended(done) {
		t.Error("Complete, and still Suspended")
	}
	f.EventUntil("job", "Resumed", "")
}

// Since 1.36 the API server refuses such edits without the condition Suspended=True.
func editedBeforePlacement(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Suspended(), ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.HubJobUntil("job", ferrytest.Suspended)
	f.Patch("job", `{"spec":{"template":{"spec":{"nodeSelector":{"tier":"special"}}}}}`)
	f.Patch("job", resume)
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	expectNode(t, f, "w1", "special-0")
}

func expectNode(t *testing.T, f *ferrytest.Ferry, worker, node string) {
	t.Helper()
	for _, pod := range f.Pods(f.Cluster(worker)) {
		if pod.DeletionTimestamp == nil && pod.Spec.NodeName != node {
			t.Errorf("Pod %s is on node %q, want %s", pod.Name, pod.Spec.NodeName, node)
		}
	}
}

func parallelism(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(6), rigtest.RunForever(), atMost(2))
	f.LeaveWorker(f.AssignedWorker("job"))
	f.HubJobUntil("job", rigtest.Running(2))
	for _, step := range []struct {
		patch string
		want  int32
	}{
		{`{"spec":{"parallelism":4}}`, 4}, {`{"spec":{"parallelism":1}}`, 1},
		{`{"spec":{"parallelism":0}}`, 0}, {`{"spec":{"parallelism":3}}`, 3},
	} {
		f.Patch("job", step.patch)
		f.HubJobUntil("job", func(j *batchv1.Job) bool {
			return j.Status.Active == step.want && ptr.Deref(j.Status.Ready, 0) == step.want
		})
	}
}

func elasticIndexed(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Indexed(2), rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	f.Patch("job", `{"spec":{"completions":5,"parallelism":5}}`)
	f.HubJobUntil("job", rigtest.Running(5))
	f.Patch("job", `{"spec":{"completions":3,"parallelism":3}}`)
	f.HubJobUntil("job", rigtest.Running(3))

	f.Submit("ends", rigtest.Indexed(4), rigtest.RunFor(3*time.Second), ferrytest.OnWorker(worker),
		rigtest.PodLabel(rig.LabelFailIndexes, "2_3"), rigtest.BackoffLimit(1000))
	f.HubJobUntil("ends", rigtest.Running(4))
	f.Patch("ends", `{"spec":{"completions":2,"parallelism":2}}`)
	done := f.HubJobUntil("ends", rigtest.Complete)
	if done.Status.Succeeded != 2 || done.Status.CompletedIndexes != "0,1" {
		t.Errorf("succeeded %d: %s", done.Status.Succeeded, done.Status.CompletedIndexes)
	}
}

func schedulingDirectives(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever(), ferrytest.OnWorker("w1"),
		func(j *batchv1.Job) {
			j.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "node-0"}
		})
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(2))
	expectNode(t, f, "w1", "node-0")
	f.Patch("job", suspend)
	f.HubJobUntil("job", ferrytest.All(ferrytest.Suspended, noPods))
	f.Patch("job", `{"spec":{"template":{"metadata":{"labels":{"added":"yes"}},"spec":{
		"nodeSelector":{"kubernetes.io/hostname":null,"tier":"special"},
		"tolerations":[{"key":"example.org/special","operator":"Exists"}]}}}}`)
	f.Patch("job", resume)
	f.HubJobUntil("job", rigtest.Running(2))
	expectNode(t, f, "w1", "special-0")
	template := f.MirrorUntil("w1", "job", ferrytest.Exists).Spec.Template
	if template.Labels["added"] != "yes" || len(template.Spec.Tolerations) != 1 {
		t.Errorf("the mirror's template has labels %v, tolerations %v", template.Labels, template.Spec.Tolerations)
	}
}

func podResources(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(1))
	f.Patch("job", suspend)
	f.HubJobUntil("job", ferrytest.All(ferrytest.Suspended, noPods))
	f.PatchIn(f.Hub, types.StrategicMergePatchType, "job",
		`{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"3"}}}]}}}}`)
	f.Patch("job", resume)
	f.HubJobUntil("job", rigtest.Running(1))
	for _, pod := range f.Pods(f.Cluster(worker)) {
		if cpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]; pod.DeletionTimestamp == nil && cpu.Value() != 3 {
			t.Errorf("the Pod requests %s CPUs", &cpu)
		}
	}
}

func activeDeadline(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.RunForever())
	f.LeaveWorker(f.AssignedWorker("job"))
	f.HubJobUntil("job", rigtest.Running(1))
	f.Patch("job", `{"spec":{"activeDeadlineSeconds":1}}`)
	expectFailure(t, f, "job", batchv1.JobReasonDeadlineExceeded)
}

func expectFailure(t *testing.T, f *ferrytest.Ferry, name, reason string) {
	t.Helper()
	job := f.HubJobUntil(name, rigtest.Failed)
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Reason != reason {
			t.Errorf("failed with reason %s, want %s", c.Reason, reason)
		}
	}
	if !rigtest.HasCondition(batchv1.JobFailureTarget)(job) || job.Status.Active != 0 {
		t.Errorf("failed with the status %+v", job.Status)
	}
}

// The Pod's second attempt comes 10 s after the first: the edit comes before.
func backoffLimit(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.ExitCode(1), rigtest.BackoffLimit(6))
	f.LeaveWorker(f.AssignedWorker("job"))
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
	f.Patch("job", `{"spec":{"backoffLimit":0}}`)
	expectFailure(t, f, "job", batchv1.JobReasonBackoffLimitExceeded)
}

func metadata(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.RunForever(), func(j *batchv1.Job) { j.Labels = map[string]string{"old": "yes", "team": "blue"} })
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.MirrorUntil(worker, "job", ferrytest.Exists)
	f.Patch("job", `{"metadata":{"labels":{"old":null,"team":"red"},"annotations":{"note":"new"}}}`)
	f.MirrorUntil(worker, "job", func(j *batchv1.Job) bool {
		return j.Labels["team"] == "red" && j.Labels["old"] == "" && j.Annotations["note"] == "new"
	})
}
