package show

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// worker makes a Ready worker with 40 CPUs, 10 of them requested.
func worker(name string, edits ...func(*v1alpha1.WorkerCluster)) v1alpha1.WorkerCluster {
	w := v1alpha1.WorkerCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: before(48 * time.Hour), Generation: 2, Labels: map[string]string{"region": "eu"}},
		Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: name, JobController: v1alpha1.JobControllerBuiltIn, Weight: 1},
		Status: v1alpha1.WorkerClusterStatus{
			ObservedGeneration: 2, KubernetesVersion: "v1.36.3", Nodes: 3, Jobs: 4,
			Allocatable: list("40", "96Gi"), Requested: list("10", "24Gi"), LastContactTime: ptr.To(before(3 * time.Second)),
		},
	}
	set(&w, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnected, "")
	set(&w, v1alpha1.ConditionSchedulable, metav1.ConditionTrue, v1alpha1.ReasonSchedulable, "")
	for _, edit := range edits {
		edit(&w)
	}
	return w
}

func set(w *v1alpha1.WorkerCluster, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

func with(kind string, status metav1.ConditionStatus, reason, message string) func(*v1alpha1.WorkerCluster) {
	return func(w *v1alpha1.WorkerCluster) { set(w, kind, status, reason, message) }
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// job makes a Job of 10 completions that has run for ten minutes in the worker west.
func job(name string, edits ...func(*batchv1.Job)) batchv1.Job {
	started := before(10 * time.Minute)
	j := batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "team-a", UID: types.UID("uid-" + name), CreationTimestamp: before(11 * time.Minute),
		},
		Spec:   batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](10)},
		Status: batchv1.JobStatus{StartTime: &started, Active: 3, Ready: ptr.To[int32](2), Succeeded: 4},
	}
	hubstate.Set(&j, hubstate.Changes{hubstate.Cluster: "west"})
	for _, edit := range edits {
		edit(&j)
	}
	return j
}

// divided makes a Job run in three workers, one of which gives indexes back, and one stops.
func divided(j *batchv1.Job) {
	j.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: "All"}
	hubstate.Set(j, hubstate.Changes{
		hubstate.Shards:      "east=0-3;north=8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38;west=4-7,9",
		hubstate.ShardsState: `{"shards":{"east":{"parallelism":2,"failed":1},"north":{"parallelism":1,"returning":"36,38"},"west":{"stopping":true}}}`,
	})
	j.Spec.CompletionMode, j.Spec.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](40)
	j.Status.CompletedIndexes, j.Status.FailedIndexes, j.Status.Succeeded = "0,1,4,11", ptr.To("2"), 4
}

func ended(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: before(time.Minute),
		})
	}
}

// waiting is a Job that isn't placed.
func waiting(j *batchv1.Job) {
	j.Status = batchv1.JobStatus{}
}

func event(about, kind, reason, message string, ago time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team-a"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: about, Namespace: "team-a", UID: types.UID("uid-" + about)},
		Type:           kind, Reason: reason, Message: message, LastTimestamp: before(ago), ReportingController: v1alpha1.EventController,
	}
}

func pod(name string, index string, ago time.Duration, phase corev1.PodPhase, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: before(ago)},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: phase, PodIP: "10.0.0.7", ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}},
	}
	p.Annotations = map[string]string{v1alpha1.AnnotationCluster: "west"}
	if index != "" {
		p.Annotations[batchv1.JobCompletionIndexAnnotation] = index
	}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}
