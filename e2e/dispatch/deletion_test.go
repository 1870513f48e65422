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
		{"cascade=background", deleteInBackground},
		{"cascade=foreground", deleteInForeground},
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

// held are Pods of a worker with a finalizer: they don't go before they're released.
type held struct {
	f      *ferrytest.Ferry
	worker string
	pods   []corev1.Pod
}

const holds = "test.jobferry.dev/holds"

// hold keeps the Pods that a worker has now.
func hold(f *ferrytest.Ferry, worker string) held {
	h := held{f, worker, f.Pods(f.Cluster(worker))}
	h.patch(`{"metadata":{"finalizers":["` + holds + `"]}}`)
	return h
}

func (h held) patch(patch string) {
	for i := range h.pods {
		h.f.PatchPod(h.worker, h.pods[i].Name, patch)
	}
}

// end waits until all are being deleted.
func (h held) end() {
	h.f.PodsUntil(h.worker, h.pods, func(p *corev1.Pod) bool { return p != nil && p.DeletionTimestamp != nil })
}

// release lets them go, and waits until they're gone.
func (h held) release() {
	h.patch(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["` + holds + `"]}}`)
	h.f.PodsGone(h.worker, h.pods)
}

// runsTwoPods has a Job of two Pods run in the worker that it returns.
func runsTwoPods(f *ferrytest.Ferry) string {
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	return worker
}

func isDeleted(j *batchv1.Job) bool { return j.DeletionTimestamp != nil }

// In the background, as on one cluster: the Job goes first, and the garbage collector ends its
// Pods.
func deleteInBackground(t *testing.T) {
	f := ferrytest.For(t)
	worker := runsTwoPods(f)
	pods := hold(f, worker)
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
	pods.end()
	pods.release()
}

// In the foreground, the Job is there until its Pods are gone.
func deleteInForeground(t *testing.T) {
	f := ferrytest.For(t)
	worker := runsTwoPods(f)
	pods := hold(f, worker)
	f.Delete("job", metav1.DeletePropagationForeground)
	pods.end()
	f.MirrorUntil(worker, "job", isDeleted)
	f.HubJobUntil("job", isDeleted)
	pods.release()
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
}

func deleteOrphan(t *testing.T) {
	f := ferrytest.For(t)
	worker := runsTwoPods(f)
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

// A Pod of the first Job is still there when the second ends, in the same worker: it's no Pod of
// the second.
func recreate(t *testing.T) {
	f := ferrytest.For(t)
	first := f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	before := f.MirrorUntil("w1", "job", ferrytest.Exists)
	pods := hold(f, "w1")
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	second := f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Parallel(3))
	done := f.HubJobUntil("job", rigtest.Complete)
	if s := done.Status; done.UID != second.UID || s.Succeeded != 3 || s.Failed != 0 || s.Active != 0 || ptr.Deref(s.Terminating, 0) != 0 {
		t.Errorf("the second Job ended with %+v", s)
	}
	m := f.MirrorUntil("w1", "job", rigtest.Complete)
	if uid := mirror.HubUID(m); uid != second.UID || uid == first.UID || m.UID == before.UID {
		t.Errorf("the mirror is of %s, want %s", uid, second.UID)
	}
	f.PodsUntil("w1", pods.pods, func(p *corev1.Pod) bool {
		return p != nil && p.DeletionTimestamp != nil && metav1.IsControlledBy(p, before)
	})
	pods.release()
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
