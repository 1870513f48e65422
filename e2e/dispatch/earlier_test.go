package dispatch_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Earlier releases left it to the worker's API server to generate the selector of a mirror. Such a
// mirror is kept until its Job ends, and the manager changes it as its own.
func TestMirrorOfAnEarlierRelease(t *testing.T) {
	f := ferrytest.For(t)
	manager := f.RunManager()
	f.Register("w1")
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever(), ferrytest.OnWorker("w1"))
	f.LeaveWorker("w1")
	hub := f.HubJobUntil("job", rigtest.Running(2))
	manager.Stop()
	theirs := replaceByEarlier(t, f, hub)
	if by := theirs.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; by != string(theirs.UID) {
		t.Fatalf("the mirror selects by %v", theirs.Spec.Selector)
	}

	f.RunManager()
	f.HubJobUntil("job", rigtest.Running(2))
	f.Patch("job", suspend)
	f.HubJobUntil("job", ferrytest.All(ferrytest.Suspended, noPods))
	f.Patch("job", `{"spec":{"template":{"metadata":{"labels":{"`+rig.LabelRunFor+`":"1s"}}}}}`)
	f.Patch("job", resume)
	done := f.HubJobUntil("job", rigtest.Complete)
	if done.Status.Succeeded != 2 || done.Status.Failed != 0 {
		t.Errorf("ended with %+v", done.Status)
	}
	if ended := f.MirrorUntil("w1", "job", rigtest.Complete); ended.UID != theirs.UID {
		t.Error("the mirror was made anew")
	}
	if pods := podsByItsSelector(t, f, "w1", theirs); len(pods) < 2 {
		t.Errorf("the mirror's selector finds %d Pods, want those of 2 completions", len(pods))
	}
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	f.MirrorGone("w1", "job")
}

// replaceByEarlier replaces a mirror in w1 by one that an earlier release has made for the same
// Job.
func replaceByEarlier(t *testing.T, f *ferrytest.Ferry, hub *batchv1.Job) *batchv1.Job {
	t.Helper()
	ours := f.MirrorUntil("w1", "job", ferrytest.Exists)
	deleteMirror(t, f, "w1", metav1.DeletePropagationForeground)
	f.MirrorGone("w1", "job")
	return f.Create(f.Cluster("w1"), mirror.Project(hub, mirror.Target{Origin: v1alpha1.Origin(ours.Labels[v1alpha1.LabelOrigin])}))
}
