package worker_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// assign gives the Job other indexes, as the hub does.
func (s *scene) assign(indexes string) {
	s.t.Helper()
	s.merge(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationIndexes: indexes}}})
}

// merge patches the Job, or a subresource of it.
func (s *scene) merge(change map[string]any, subresources ...string) {
	s.t.Helper()
	data, err := json.Marshal(change)
	s.ok(err)
	_, err = s.Client.BatchV1().Jobs(s.ns).Patch(s.Context(), "job", types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	s.ok(err)
}

func shard(indexes string) edit {
	return func(j *batchv1.Job) {
		j.Annotations = map[string]string{v1alpha1.AnnotationIndexes: indexes, v1alpha1.AnnotationIndexesObserved: indexes}
	}
}

func observed(indexes string) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return j.Annotations[v1alpha1.AnnotationIndexesObserved] == indexes }
}

func completed(indexes string) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == indexes }
}

// runningIndexes waits until the Job has Pods of these indexes, and returns them in that order.
func (s *scene) runningIndexes(indexes ...int) []corev1.Pod {
	s.t.Helper()
	pods := s.running(int32(len(indexes)))
	for i, p := range pods {
		if workertest.Index(p) != indexes[i] {
			s.t.Fatalf("Pod %s runs, want indexes %v", p.Name, indexes)
		}
	}
	return pods
}

// A shard grows and shrinks while it runs, with the controller's documented rights and no more. The
// API server takes the annotation along with the status.
func TestShard(t *testing.T) {
	for _, cluster := range []string{"worker", "older"} {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			s := open(t, cluster)
			s.ok(workertest.AddNode(s.Context(), s.Client))
			name := "example.com/" + s.ns
			_, _, log := s.process(s.serviceAccount(), "--managed-by="+name, "--sync-batch-period="+batch, "--pod-failure-backoff=1ms")
			s.start(rigtest.ManagedBy(name), indexed(4, 10), shard("2-4"))
			s.runShard()
			text, err := os.ReadFile(log)
			s.ok(err)
			if strings.Contains(string(text), "forbidden") {
				t.Errorf("a permission is missing:\n%s", text)
			}
		})
	}
}

func (s *scene) runShard() {
	s.t.Helper()
	s.runningIndexes(2, 3, 4)

	// 2 and 4 leave while they run, 7 is new.
	s.assign("3,7")
	pods := s.runningIndexes(2, 3, 4, 7)
	s.until(observed("2-4,7"))
	s.exit(0, pods[0])
	s.until(all(completed("2"), observed("3,4,7")))
	s.exit(1, pods[2])
	s.until(all(counted(1, 1), observed("3,7"), active(2)))
	s.exit(0, pods[1], pods[3])
	s.until(all(completed("2,3,7"), counted(3, 1), active(0)))

	// It doesn't end, and may grow again.
	s.assign("3,7,9")
	s.exit(0, s.runningIndexes(9)...)
	s.until(all(completed("2,3,7,9"), observed("3,7,9")))
	s.assign("all")
	s.event("InvalidIndexes", "can't be read")
	s.assign("0")
	s.runningIndexes(0)
	if started := s.pods(every); len(started) != 6 {
		names := make([]string, 0, len(started))
		for _, p := range started {
			names = append(names, p.Name)
		}
		s.t.Errorf("Pods %v", slices.Sorted(slices.Values(names)))
	}

	// The hub ends it.
	now := metav1.Now()
	conditions := []batchv1.JobCondition{{
		Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, Reason: "SuccessPolicy", Message: "Matched rules at index 3",
		LastProbeTime: now, LastTransitionTime: now,
	}}
	s.merge(map[string]any{"status": map[string]any{"conditions": conditions}}, "status")
	s.until(func(j *batchv1.Job) bool { return j.Status.Active == 0 })
	s.terminate()
	end := has(s.until(rigtest.Complete), batchv1.JobComplete)
	if end.Reason != conditions[0].Reason || end.Message != conditions[0].Message {
		s.t.Errorf("the end is %+v", end)
	}
}
