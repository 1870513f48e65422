package restore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A worker's etcd is put back to a backup while the manager runs. What has ended, or was deleted,
// since then doesn't run again; what was made since then is made again; an index that the hub knows
// as completed isn't run again.
func TestAWorkersEtcdIsPutBack(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	w1, backup := f.Cluster("w1"), filepath.Join(t.TempDir(), "etcd")
	controller := startWorker(t, w1)
	for _, name := range []string{"ends", "deleted"} {
		f.Submit(name, rigtest.RunForever())
		f.HubJobUntil(name, rigtest.Running(1))
	}
	f.Submit("indexed", rigtest.Indexed(4), rigtest.RunForever())
	f.HubJobUntil("indexed", rigtest.Running(4))
	f.EndPod("w1", podOf(f, "indexed", "0"))
	f.HubJobUntil("indexed", completed("0"))
	if err := w1.Backup(f.Context(), backup); err != nil {
		t.Fatal(err)
	}

	f.EndPod("w1", podOf(f, "ends", ""))
	f.HubJobUntil("ends", rigtest.Complete)
	f.Delete("deleted", metav1.DeletePropagationBackground)
	f.HubJobGone("deleted")
	f.EndPod("w1", podOf(f, "indexed", "1"))
	f.EndPod("w1", podOf(f, "indexed", "2"))
	f.HubJobUntil("indexed", completed("0-2"))
	f.Submit("later", rigtest.RunForever())
	f.HubJobUntil("later", rigtest.Running(1))
	writeMuch(t, f, w1)
	untilProbed(t, f, w1, "jobferry-manager")
	untilProbed(t, f, w1, "jobferry-worker")
	if err := w1.Restore(f.Context(), backup); err != nil {
		t.Fatal(err)
	}

	untilItEnds(t, f, controller)
	f.EventOn("default", "w1", v1alpha1.ReasonRestored, "earlier state")
	f.WorkerUntil("w1", ferrytest.Ready)
	f.EventUntil("ends", v1alpha1.EventMirrorStopped, "w1")
	f.MirrorGone("w1", "ends")
	f.MirrorGone("w1", "deleted")
	f.MirrorUntil("w1", "later", rigtest.Running(1))
	f.EventUntil("indexed", v1alpha1.EventProgressRestored, "w1")
	f.MirrorUntil("w1", "indexed", ferrytest.All(completed("0-2"), rigtest.Running(1)))
	f.EndPod("w1", podOf(f, "indexed", "3"))
	if done := f.HubJobUntil("indexed", rigtest.Complete); done.Status.Succeeded != 4 || done.Status.Failed != 0 {
		t.Errorf("the status of the Job with indexes is %+v", done.Status)
	}
	f.Submit("next", rigtest.RunForever())
	f.HubJobUntil("next", rigtest.Running(1))
	f.EndPod("w1", podOf(f, "next", ""))
	f.HubJobUntil("next", rigtest.Complete)
}

// The hub's etcd is put back while the manager runs: it ends, and the next one takes over what the
// workers have done since.
func TestTheHubsEtcdIsPutBack(t *testing.T) {
	f := ferrytest.For(t)
	manager := f.StartManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	backup := filepath.Join(t.TempDir(), "etcd")
	f.Submit("ends", rigtest.RunForever())
	f.HubJobUntil("ends", rigtest.Running(1))
	if err := f.Hub.Backup(f.Context(), backup); err != nil {
		t.Fatal(err)
	}
	f.EndPod("w1", podOf(f, "ends", ""))
	f.HubJobUntil("ends", rigtest.Complete)
	f.Submit("later", rigtest.RunForever())
	f.HubJobUntil("later", rigtest.Running(1))
	writeMuch(t, f, f.Hub)
	untilProbed(t, f, f.Hub, "jobferry-manager")
	if err := f.Hub.Restore(f.Context(), backup); err != nil {
		t.Fatal(err)
	}

	untilItEnds(t, f, manager.Process)
	if log := manager.LogTail(5); !strings.Contains(log, "put back to an earlier state") {
		t.Errorf("the manager says:\n%s", log)
	}
	// it's known beforehand that the one that ended isn't to be waited for
	f.Kubectl(f.Hub, "", "annotate", "--overwrite", "workercluster", "w1", v1alpha1.AnnotationTakeOverFrom+"="+holderOf(t, f))
	f.StartManager()
	if done := f.HubJobUntil("ends", rigtest.Complete); done.Status.Succeeded != 1 {
		t.Errorf("the status of the Job that ended is %+v", done.Status)
	}
	f.MirrorGone("w1", "later")
	f.Submit("next", rigtest.RunForever())
	f.HubJobUntil("next", rigtest.Running(1))
	f.EndPod("w1", podOf(f, "next", ""))
	f.HubJobUntil("next", rigtest.Complete)
}

// startWorker starts jobferry-worker beside a cluster's own Job controller.
func startWorker(t *testing.T, c *rig.Cluster) *process.Process {
	t.Helper()
	program, err := product.Program("jobferry-worker")
	if err != nil {
		t.Fatal(err)
	}
	started, err := workertest.Start(program, c.Kubeconfig(), filepath.Join(t.TempDir(), "worker.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Kill)
	return started
}

// untilProbed waits until a program has asked for the resourceVersion of a cluster from now on.
func untilProbed(t *testing.T, f *ferrytest.Ferry, c *rig.Cluster, program string) {
	t.Helper()
	began := time.Now()
	err := wait.PollUntilContextCancel(f.Context(), 100*time.Millisecond, true, func(context.Context) (bool, error) {
		all, err := c.Requests()
		return slices.ContainsFunc(all, func(r rig.Request) bool {
			return audit.IsProbe(r) && r.Object.Resource == "jobs" && strings.HasPrefix(r.UserAgent, program) && r.Received.After(began)
		}), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func untilItEnds(t *testing.T, f *ferrytest.Ferry, p *process.Process) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-f.Context().Done():
		t.Fatalf("it runs on:\n%s", p.LogTail(20))
	}
}

func completed(indexes string) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == indexes }
}

// podOf is the Pod of a Job that runs in w1, of one index if there are several.
func podOf(f *ferrytest.Ferry, job, index string) string {
	for _, p := range f.Pods(f.Cluster("w1")) {
		if p.Labels[batchv1.JobNameLabel] == job && p.Labels[batchv1.JobCompletionIndexAnnotation] == index &&
			p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			return p.Name
		}
	}
	return ""
}

// writeMuch changes a cluster as often as it is changed in a minute of work.
func writeMuch(t *testing.T, f *ferrytest.Ferry, c *rig.Cluster) {
	t.Helper()
	maps := c.Client().CoreV1().ConfigMaps(f.NS)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}
	if _, err := maps.Create(f.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		patch := fmt.Appendf(nil, `{"data":{"i":"%d"}}`, i)
		if _, err := maps.Patch(f.Context(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
