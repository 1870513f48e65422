package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestCordonKeepsNewJobsAway(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w2")
	f.Submit("running", ferrytest.OnWorker("w2"), rigtest.RunFor(3*time.Second))
	f.Submit("huge", ferrytest.OnWorker("w2"), requesting("cpu", "1000"))
	f.HubJobUntil("running", rigtest.Running(1))
	f.EventUntil("huge", "Pending", "never fits: Insufficient cpu")

	f.SetWorker("w2", `{"cordoned":true}`)
	defer f.SetWorker("w2", `{"cordoned":false}`)
	f.EventUntil("huge", "Pending", "cordoned") // another reason is reported, too
	f.Submit("new", ferrytest.OnWorker("w2"))
	f.EventUntil("new", "Pending", "cordoned")
	f.HubJobUntil("running", rigtest.Complete)

	f.SetWorker("w2", `{"cordoned":false}`)
	f.HubJobUntil("new", rigtest.Complete)
}

// A Secret with another kubeconfig for the same cluster swaps the client; Jobs don't notice.
func TestRotatedKubeconfig(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	f.Submit("before", ferrytest.OnWorker("w1"), rigtest.RunFor(3*time.Second))
	f.HubJobUntil("before", rigtest.Running(1))
	rotated, err := f.Cluster("w1").UserKubeconfigBytes("jobferry", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.ReplaceSecret("w1", []byte("rubbish: ["))
	f.WorkerUntil("w1", ferrytest.NotReady(v1alpha1.ReasonKubeconfigInvalid))
	f.ReplaceSecret("w1", rotated)
	f.WorkerUntil("w1", ferrytest.Ready)
	f.Submit("after", ferrytest.OnWorker("w1"))
	f.HubJobUntil("after", rigtest.Complete)
	if done := f.HubJobUntil("before", rigtest.Complete); done.Status.Failed != 0 {
		t.Errorf("%d Pods failed", done.Status.Failed)
	}
}

// A worker whose Secret is deleted goes as its removalPolicy says, and leaves nothing in silence.
func TestRemovalOfAWorker(t *testing.T) {
	for _, test := range []struct {
		policy v1alpha1.RemovalPolicy
		run    func(*testing.T, *ferrytest.Ferry)
	}{
		{v1alpha1.RemovalWait, removalWaits},
		{v1alpha1.RemovalMove, removalMoves},
		{v1alpha1.RemovalOrphan, removalOrphans},
	} {
		t.Run(string(test.policy), func(t *testing.T) {
			f := ferrytest.For(t)
			f.RunManager()
			f.Register("w1", "w2")
			f.LeaveWorker("w1")
			f.LeaveWorker("w2")
			f.SetWorker("w2", fmt.Sprintf(`{"removalPolicy":%q}`, test.policy))
			f.Submit("finished", ferrytest.OnWorker("w2"))
			f.HubJobUntil("finished", rigtest.Complete)
			test.run(t, f)
			f.WorkerGone("w2")
			f.SecretGone("w2")
			// Nothing is left in the worker that its deletion would have to wait for, with or
			// without a manager.
			f.HubJobUntil("finished", func(j *batchv1.Job) bool { return !slices.Contains(j.Finalizers, v1alpha1.FinalizerMirror) })
		})
	}
}

func removalWaits(_ *testing.T, f *ferrytest.Ferry) {
	f.Submit("running", ferrytest.OnWorker("w2"), rigtest.RunFor(4*time.Second))
	f.HubJobUntil("running", rigtest.Running(1))
	f.Unregister("w2")
	f.WorkerUntil("w2", func(w *v1alpha1.WorkerCluster) bool { _, ok := removing(w); return ok })
	f.Submit("new", ferrytest.OnWorker("w2"))
	f.EventUntil("new", "Pending", "clusters available")
	f.HubJobUntil("running", rigtest.Complete)
	f.MirrorGone("w2", "running")
	f.MirrorGone("w2", "finished")
}

func removing(w *v1alpha1.WorkerCluster) (message string, ok bool) {
	for _, c := range w.Status.Conditions {
		if c.Type == v1alpha1.ConditionSchedulable && c.Reason == v1alpha1.ReasonRemoving {
			return c.Message, true
		}
	}
	return "", false
}

// allowMain lets a Job that was sent to one worker go to any.
const allowMain = `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"pool=main"}}}`

func removalMoves(t *testing.T, f *ferrytest.Ferry) {
	f.Submit("running", ferrytest.OnWorker("w2"), rigtest.Indexed(3), rigtest.RunFor(2*time.Second))
	f.HubJobUntil("running", rigtest.Running(3))
	f.Patch("running", allowMain)
	f.Unregister("w2")
	f.MirrorGone("w2", "running")
	f.MirrorGone("w2", "finished")
	done := f.HubJobUntil("running", rigtest.Complete)
	if at := ferrytest.ClusterOf(done); at != "w1" || done.Status.Succeeded != 3 {
		t.Errorf("ended on %s with %d succeeded", at, done.Status.Succeeded)
	}
}

func removalOrphans(t *testing.T, f *ferrytest.Ferry) {
	f.Submit("running", ferrytest.OnWorker("w2"), rigtest.RunForever())
	f.HubJobUntil("running", rigtest.Running(1))
	f.Patch("running", allowMain)
	f.Unregister("w2")
	f.MirrorUntil("w1", "running", rigtest.Running(1))
	left := f.MirrorUntil("w2", "running", rigtest.Running(1))
	if left.Labels[v1alpha1.LabelOrigin] != "" || left.Annotations[v1alpha1.AnnotationHubUID] != "" {
		t.Errorf("left with the marks of its hub: %v, %v", left.Labels, left.Annotations)
	}
	if left.Annotations[v1alpha1.AnnotationLeft] != "true" {
		t.Errorf("nothing says that it's left to the worker: %v", left.Annotations)
	}
	f.WorkerGone("w2")
	f.PatchIn(f.Cluster("w2"), types.MergePatchType, "running", suspend)
}

// Of two workers with room, a Job goes to the one that is cheaper for its requests.
func TestCheaperWorkerGoesFirst(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	defer f.SetWorker("w1", `{"cost":null}`)
	defer f.SetWorker("w2", `{"cost":null}`)
	for _, price := range []string{`"-1"`, `-1`, `"much"`} {
		_, err := f.Hub.Kubectl(f.Context(), "", "patch", "workercluster", "w1", "--type=merge", "-p", `{"spec":{"cost":{"cpu":`+price+`}}}`)
		if err == nil || !strings.Contains(err.Error(), "spec.cost") {
			t.Errorf("price %s: error %v", price, err)
		}
	}
	for other, want := range map[string]string{"w1": "w2", "w2": "w1"} {
		f.SetWorker(want, `{"cost":{"cpu":"0.5"}}`)
		f.SetWorker(other, `{"cost":{"cpu":1}}`)
		for _, worker := range []string{want, other} {
			f.WorkerUntil(worker, ferrytest.Observed)
		}
		for i := range 3 {
			name := fmt.Sprintf("%s-%d", want, i)
			f.Submit(name, requesting("cpu", "10m"))
			if at := ferrytest.ClusterOf(f.HubJobUntil(name, rigtest.Complete)); at != want {
				t.Errorf("%s ran on %s", name, at)
			}
		}
	}
}
