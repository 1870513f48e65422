package plan

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var (
	testOptions = Options{
		TrackingFinalizer: "example.com/tracking",
		PodFailureBackoff: 10 * time.Second, MaxPodFailureBackoff: 6 * time.Minute,
		SyncBatchPeriod: time.Second, MaxUncountedPods: 4, MaxPodCreateDeletePerSync: 5,
	}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// at is noon and some seconds.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
}

// aJob is a running Job of one Pod, changed by the given edits.
func aJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid"},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](6),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "job-uid"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job": "job-uid"}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func sized(parallelism, completions int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = &parallelism, &completions }
}

func workQueue(parallelism int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = &parallelism, nil }
}

func indexed(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }

func indexLimit(limit int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		indexed(j)
		j.Spec.BackoffLimitPerIndex, j.Spec.BackoffLimit = &limit, ptr.To[int32](1<<31-1)
	}
}

func suspended(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func onlyFailedReplaced(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }

func policy(rules ...batchv1.PodFailurePolicyRule) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
}

func onExit(action batchv1.PodFailurePolicyAction, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes,
	}}
}

func onCondition(action batchv1.PodFailurePolicyAction, kind corev1.PodConditionType) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
		{Type: kind, Status: corev1.ConditionTrue},
	}}
}

func withCondition(kind batchv1.JobConditionType, reason string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions,
			newCondition(kind, corev1.ConditionTrue, reason, "because", noon))
	}
}

// aPod is a tracked, pending Pod of aJob.
func aPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: *at(0),
			Labels: map[string]string{"job": "job-uid"}, Annotations: map[string]string{},
			Finalizers:      []string{testOptions.TrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aJob(), batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func index(i int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i) }
}

func failures(counted int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(counted) }
}

func onNode(p *corev1.Pod) { p.Spec.NodeName = "node" }

func running(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodRunning }

func isReady(since int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		running(p)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: *at(since),
		})
	}
}

func created(seconds int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = *at(seconds) }
}

func restarted(times int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", RestartCount: times})
	}
}

func initRestarted(times int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: "init", RestartCount: times})
	}
}

func succeeded(p *corev1.Pod) { exited(0, 0)(p) }

func failed(p *corev1.Pod) { exited(1, 0)(p) }

// exited ends the Pod's container at that second.
func exited(code int32, second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		onNode(p)
		p.Status.Phase = corev1.PodFailed
		if code == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{containerExit("main", code, second)}
	}
}

func containerExit(name string, code int32, second int) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: *at(second)},
	}}
}

func deletedAt(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = at(second) }
}

func untracked(p *corev1.Pod) { p.Finalizers = nil }

func podConditionTrue(kind corev1.PodConditionType) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}
