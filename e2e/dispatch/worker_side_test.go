package dispatch_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager"
)

// What somebody does to a mirror, or had in the worker before.
func TestInterferenceInTheWorker(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) {
		o.PassOver = 2 * time.Second
		o.Timing.StuckNotice = time.Second
	})
	f.Register("w1", "w2")
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"mirror deleted", mirrorDeleted},
		{"mirror deleted with its Pods left behind", mirrorOrphaned},
		{"mirror deleted with Pods left behind that count", countedPodsLeftBehind},
		{"mirror suspended", mirrorSuspended},
		{"mirror edited", mirrorEdited},
		{"mirror's record removed", recordRemoved},
		{"foreign Job of that name is left alone", foreignLeftAlone},
		{"foreign Job of that name is passed over", foreignPassedOver},
		{"placement removed from the hub Job", placementRemoved},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); test.run(t) })
	}
}

func deleteMirror(t *testing.T, f *ferrytest.Ferry, worker string, propagation metav1.DeletionPropagation) {
	t.Helper()
	jobs := f.Cluster(worker).Client().BatchV1().Jobs(f.NS)
	if err := jobs.Delete(f.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		t.Fatal(err)
	}
}

func mirrorDeleted(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	before := f.MirrorUntil(worker, "job", rigtest.Running(2))
	hub := f.HubJobUntil("job", rigtest.Running(2))
	if pods := podsByItsSelector(t, f, worker, hub); len(pods) != 2 {
		t.Errorf("the hub Job's selector finds %d Pods in the worker, want 2", len(pods))
	}
	deleteMirror(t, f, worker, metav1.DeletePropagationForeground)
	f.MirrorUntil(worker, "job", func(j *batchv1.Job) bool { return j.UID != before.UID && rigtest.Running(2)(j) })
	job := f.HubJobUntil("job", rigtest.Running(2))
	if job.Status.Failed != 0 {
		t.Errorf("the Pods that were deleted with the mirror count as %d failures", job.Status.Failed)
	}
	f.EventUntil("job", "MirrorRecreated", worker)
}

func mirrorOrphaned(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Indexed(3), rigtest.RunFor(2*time.Second))
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(3))
	deleteMirror(t, f, worker, metav1.DeletePropagationOrphan)
	done := f.HubJobUntil("job", rigtest.Complete)
	if done.Status.Succeeded != 3 || done.Status.CompletedIndexes != "0-2" {
		t.Errorf("ended with %+v", done.Status)
	}
}

// podsByItsSelector are the Pods in a worker that a hub Job's selector finds.
func podsByItsSelector(t *testing.T, f *ferrytest.Ferry, worker string, hub *batchv1.Job) []corev1.Pod {
	t.Helper()
	list, err := f.Cluster(worker).Client().CoreV1().Pods(f.NS).List(f.Context(), metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(hub.Spec.Selector),
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Pods that are left behind are counted already: the new mirror is seeded with them, and doesn't
// adopt them. So each completion has a Pod of its own.
func countedPodsLeftBehind(t *testing.T) {
	f := ferrytest.For(t)
	const completions = 5
	f.Submit("job", rigtest.Parallel(completions), rigtest.RunFor(500*time.Millisecond), func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) })
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded >= 2 })
	deleteMirror(t, f, worker, metav1.DeletePropagationOrphan)
	hub := f.HubJobUntil("job", rigtest.Complete)
	ended := 0
	for _, pod := range podsByItsSelector(t, f, worker, hub) {
		if pod.Status.Phase == corev1.PodSucceeded {
			ended++
		}
	}
	if hub.Status.Succeeded != completions || ended < completions {
		t.Errorf("%d completions by %d Pods, want %d by at least as many", hub.Status.Succeeded, ended, completions)
	}
}

func mirrorSuspended(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(1))
	f.PatchMirror(worker, "job", suspend)
	f.MirrorUntil(worker, "job", func(j *batchv1.Job) bool { return !ptr.Deref(j.Spec.Suspend, false) && rigtest.Running(1)(j) })
	job := f.HubJobUntil("job", rigtest.Running(1))
	if ferrytest.Suspended(job) || job.Status.StartTime == nil {
		t.Errorf("the hub Job shows %+v", job.Status)
	}
}

func mirrorEdited(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever(), func(j *batchv1.Job) {
		j.Labels = map[string]string{"team": "blue"}
	})
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	f.PatchMirror(worker, "job", `{"metadata":{"labels":{"team":"red","theirs":"stays"}},
		"spec":{"parallelism":1,"backoffLimit":0,"activeDeadlineSeconds":3600,"ttlSecondsAfterFinished":0}}`)
	f.MirrorUntil(worker, "job", func(j *batchv1.Job) bool {
		return *j.Spec.Parallelism == 2 && *j.Spec.BackoffLimit == 6 && j.Spec.ActiveDeadlineSeconds == nil &&
			j.Spec.TTLSecondsAfterFinished == nil && j.Labels["team"] == "blue" && j.Labels["theirs"] == "stays"
	})
	f.MirrorUntil(worker, "job", rigtest.Running(2))
}

func recordRemoved(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(1))
	f.PatchMirror(worker, "job", `{"metadata":{"annotations":{"jobferry.dev/projected":null}}}`)
	f.MirrorUntil(worker, "job", func(j *batchv1.Job) bool { return j.Annotations["jobferry.dev/projected"] != "" })
	f.HubJobUntil("job", rigtest.Running(1))
}

func foreignLeftAlone(t *testing.T) {
	f := ferrytest.For(t)
	f.NamespaceIn("w1")
	f.Create(f.Cluster("w1"), rigtest.Job(f.NS, "job", rigtest.Suspended()))
	foreign := f.MirrorUntil("w1", "job", ferrytest.Suspended)
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.EventUntil("job", "Conflict", "w1")
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	after := f.MirrorUntil("w1", "job", ferrytest.Exists)
	if after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the foreign Job was touched: %+v", after.ObjectMeta)
	}
	// When it's gone, the name is free.
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.EventUntil("job", "Conflict", "w1")
	deleteMirror(t, f, "w1", metav1.DeletePropagationBackground)
	f.HubJobUntil("job", rigtest.Complete)
}

func foreignPassedOver(t *testing.T) {
	f := ferrytest.For(t)
	f.NamespaceIn("w1")
	f.LeaveWorker("w2")
	foreign := f.Create(f.Cluster("w1"), rigtest.Job(f.NS, "job", rigtest.RunForever()))
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.EventUntil("job", "Conflict", "w1")
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"pool=main"}}}`)
	done := f.HubJobUntil("job", rigtest.Complete)
	if at := ferrytest.ClusterOf(done); at != "w2" {
		t.Errorf("ended on %s", at)
	}
	if after := f.MirrorUntil("w1", "job", rigtest.Running(1)); after.UID != foreign.UID {
		t.Error("the foreign Job was replaced")
	}
}

func placementRemoved(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", rigtest.RunForever())
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(1))
	before := f.MirrorUntil(worker, "job", rigtest.Running(1))
	f.Keep("job", hubstate.Changes{hubstate.Cluster: ""})
	f.HubJobUntil("job", ferrytest.IsAt(worker))
	if after := f.MirrorUntil(worker, "job", rigtest.Running(1)); after.UID != before.UID {
		t.Error("the mirror was made anew")
	}
}
