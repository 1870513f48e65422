package dispatch_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// What a user, the TTL controller, a CronJob and its garbage collection do on the hub has its
// meaning in the worker.
func TestDeletionOnTheHub(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"cascade=background", func(t *testing.T) { deleteWithPods(t, metav1.DeletePropagationBackground) }},
		{"cascade=foreground", func(t *testing.T) { deleteWithPods(t, metav1.DeletePropagationForeground) }},
		{"cascade=orphan leaves the Pods", deleteOrphan},
		{"while suspended on the hub", deleteSuspended},
		{"after the end", deleteFinished},
		{"the mirror of a finished Job stays until then", finishedMirrorStays},
		{"ttlSecondsAfterFinished", ttlAfterFinished},
		{"again at once under the same name", recreate},
		{"CronJob", cronJob},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); test.run(t) })
	}
}

func deleteWithPods(t *testing.T, propagation metav1.DeletionPropagation) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever(), rigtest.PodLabel(rig.LabelStopAfter, "1s"))
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	f.Delete("job", propagation)
	f.MirrorUntil(worker, "job", func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil })
	// The hub Job is there while its mirror is.
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil })
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
	if pods := f.Pods(f.Cluster(worker)); len(pods) != 0 {
		t.Errorf("%d Pods left in the worker", len(pods))
	}
}

func deleteOrphan(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	f.Delete("job", metav1.DeletePropagationOrphan)
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
	pods := f.Pods(f.Cluster(worker))
	if len(pods) != 2 {
		t.Fatalf("%d Pods left in the worker, want 2", len(pods))
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || len(pod.OwnerReferences) != 0 || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("Pod %s: deleted %v, owners %v, %s", pod.Name, pod.DeletionTimestamp, pod.OwnerReferences, pod.Status.Phase)
		}
	}
}

func deleteSuspended(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Suspended())
	f.HubJobUntil("job", ferrytest.Suspended)
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
}

func deleteFinished(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job")
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Complete)
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
}

func finishedMirrorStays(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job")
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Complete)
	f.MirrorUntil(worker, "job", rigtest.Complete)
	// Its Pods' logs are still there, and finished is finished when someone removes them.
	propagation := metav1.DeletePropagationBackground
	jobs := f.Cluster(worker).Client().BatchV1().Jobs(f.NS)
	if err := jobs.Delete(f.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		t.Fatal(err)
	}
	f.MirrorGone(worker, "job")
	f.Patch("job", `{"metadata":{"labels":{"looked-at":"again"}}}`)
	f.Submit("other", ferrytest.OnWorker(worker))
	f.HubJobUntil("other", rigtest.Complete)
	f.MirrorGone(worker, "job")
}

func ttlAfterFinished(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](2) })
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Complete)
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
}

func recreate(t *testing.T) {
	f := ferrytest.For(t)
	first := f.Submit("job", rigtest.RunForever(), rigtest.PodLabel(rig.LabelStopAfter, "1s"))
	worker := f.AssignedWorker("job")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.HubJobUntil("job", rigtest.Running(1))
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	second := f.Submit("job", rigtest.Parallel(3))
	done := f.HubJobUntil("job", rigtest.Complete)
	if done.UID != second.UID || done.Status.Succeeded != 3 || done.Status.Failed != 0 {
		t.Errorf("the second Job ended with %+v", done.Status)
	}
	m := f.MirrorUntil(ferrytest.ClusterOf(done), "job", ferrytest.Exists)
	if uid := mirror.HubUID(m); uid != second.UID || uid == first.UID {
		t.Errorf("the mirror is of %s, want %s", uid, second.UID)
	}
	if at := ferrytest.ClusterOf(done); at != worker {
		f.MirrorGone(worker, "job")
	}
}

func cronJob(t *testing.T) {
	f := ferrytest.For(t)
	template := f.Job("unused", rigtest.Parallel(2))
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "cron", Namespace: f.NS},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *",
			Suspend:  ptr.To(true),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: template.Annotations},
				Spec:       template.Spec,
			},
		},
	}
	if _, err := f.Hub.Client().BatchV1().CronJobs(f.NS).Create(f.Context(), cron, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Kubectl(f.Hub, "", "create", "job", "by-cron", "--from=cronjob/cron", "-n", f.NS)
	job := f.HubJobUntil("by-cron", rigtest.Complete)
	if len(job.OwnerReferences) != 1 {
		t.Fatalf("the hub Job has the owners %v", job.OwnerReferences)
	}
	worker := ferrytest.ClusterOf(job)
	f.LeaveWorker(worker)
	// In the worker an owner that isn't there would have the garbage collector remove the mirror.
	if m := f.MirrorUntil(worker, "by-cron", rigtest.Complete); len(m.OwnerReferences) != 0 {
		t.Errorf("the mirror has the owners %v", m.OwnerReferences)
	}
	counted := rig.Object(f.Hub.Client().BatchV1().RESTClient(), "cronjobs", f.NS, "cron")
	f.Until(counted, func(o runtime.Object) bool { return o != nil && len(o.(*batchv1.CronJob).Status.Active) == 0 })
	f.Kubectl(f.Hub, "", "delete", "cronjob", "cron", "-n", f.NS)
	f.HubJobGone("by-cron")
	f.MirrorGone(worker, "by-cron")
}
