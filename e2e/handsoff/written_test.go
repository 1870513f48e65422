package handsoff_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// A Job that no worker can take says so in its status, for as long as it waits.
func TestAJobSaysWhyItWaits(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	f.Submit("job", rigtest.RunForever(), ferrytest.WithSelector("name=nowhere"))
	f.HubJobUntil("job", func(job *batchv1.Job) bool { return hubstate.Get(job, hubstate.Waits) == string(hubstate.NoWorker) })
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"name=w1"}}}`)
	f.HubJobUntil("job", func(job *batchv1.Job) bool { return ferrytest.ClusterOf(job) == "w1" && rigtest.Running(1)(job) })
}

// Jobferry writes a Job's status and one finalizer, which goes with the Job's end. All else is as
// its user wrote it.
func TestAJobStaysAsItWasWritten(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	written := f.Submit("job", rigtest.RunForever())
	as := func(is *batchv1.Job, finalizers ...string) {
		t.Helper()
		for what, both := range map[string][2]any{
			"labels":           {written.Labels, is.Labels},
			"annotations":      {written.Annotations, is.Annotations},
			"owner references": {written.OwnerReferences, is.OwnerReferences},
			"spec":             {written.Spec, is.Spec},
			"finalizers":       {finalizers, is.Finalizers},
		} {
			if diff := cmp.Diff(both[0], both[1]); diff != "" {
				t.Errorf("%s:\n%s", what, diff)
			}
		}
	}
	as(f.HubJobUntil("job", rigtest.Running(1)), v1alpha1.FinalizerMirror)
	worker := f.AssignedWorker("job") // other tests have registered some, too
	for _, pod := range f.Pods(f.Cluster(worker)) {
		f.EndPod(worker, pod.Name)
	}
	ended := f.HubJobUntil("job", rigtest.Complete)
	as(ended)

	var order []string
	for _, c := range ended.Status.Conditions {
		order = append(order, string(c.Type))
	}
	want := []string{string(batchv1.JobSuccessCriteriaMet), string(hubstate.Placed), string(hubstate.State), string(batchv1.JobComplete)}
	if !slices.Equal(order, want) {
		t.Errorf("conditions %v, want %v", order, want)
	}
}

// A namespace is restored from a backup of objects: its Jobs are new ones. They're placed anew, not
// on the worker of before, which takes none any more, and their account begins. The Pods of before
// are stopped first.
func TestARestoredNamespace(t *testing.T) {
	for name, withStatus := range map[string]bool{"objects": false, "objects with their status": true} {
		t.Run(name, func(t *testing.T) { restoreNamespace(t, withStatus) })
	}
}

func restoreNamespace(t *testing.T, withStatus bool) {
	t.Helper()
	f := ferrytest.For(t)
	m := f.RunManager()
	f.Register("w1")
	f.Register("w2")
	for _, worker := range []string{"w1", "w2"} {
		f.LeaveWorker(worker)
	}
	f.Submit("job", ferrytest.WithSelector("name in (w1,w2)"), preferring("w1"), rigtest.RunForever())
	backup := f.HubJobUntil("job", rigtest.Running(1))
	if ferrytest.ClusterOf(backup) != "w1" {
		t.Fatalf("the Job is on %q", ferrytest.ClusterOf(backup))
	}

	// The hub's Jobs are lost while nobody looks, so that nothing is stopped on the way.
	m.Stop()
	jobs := f.Hub.Client().BatchV1().Jobs(f.NS)
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := jobs.Patch(f.Context(), "job", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	backup.ObjectMeta = metav1.ObjectMeta{
		Namespace: f.NS, Name: "job", Labels: backup.Labels, Annotations: backup.Annotations, Finalizers: backup.Finalizers,
	}
	backup.Spec.Selector, backup.Spec.ManualSelector = nil, nil
	for _, generated := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		delete(backup.Spec.Template.Labels, generated)
	}
	restored := f.Create(f.Hub, backup.DeepCopy())
	if withStatus {
		restored.Status = backup.Status
		for i := range restored.Status.Conditions {
			restored.Status.Conditions[i].LastTransitionTime = metav1.NewTime(restored.CreationTimestamp.Add(-time.Hour))
		}
		if _, err := jobs.UpdateStatus(f.Context(), restored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.SetWorker("w1", `{"cordoned":true}`)
	f.RunManager()

	is := f.HubJobUntil("job", func(j *batchv1.Job) bool { return ferrytest.ClusterOf(j) == "w2" && rigtest.Running(1)(j) })
	f.MirrorGone("w1", "job")
	for _, m := range usage.Read(is) {
		if m.Worker != "w2" {
			t.Errorf("the account has time in %s", m.Worker)
		}
	}
	if is.UID != restored.UID || hubstate.Get(is, hubstate.MovedFrom) != "" {
		t.Errorf("it's %s, moved from %q", is.UID, hubstate.Get(is, hubstate.MovedFrom))
	}
	for _, pod := range f.Pods(f.Cluster("w1")) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			t.Errorf("Pod %s still runs in w1", pod.Name)
		}
	}
	f.SetWorker("w1", `{"cordoned":false}`)
}
