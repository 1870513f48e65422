package hub

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// trimJob keeps what the pages show of a Job, and of one that isn't Jobferry's only its name.
func trimJob(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	if !mirror.Managed(job) {
		return &batchv1.Job{ObjectMeta: identity(&job.ObjectMeta)}, nil
	}
	trimmed := &batchv1.Job{
		ObjectMeta: identity(&job.ObjectMeta),
		Spec: batchv1.JobSpec{
			Parallelism: job.Spec.Parallelism, Completions: job.Spec.Completions, CompletionMode: job.Spec.CompletionMode,
			Suspend: job.Spec.Suspend, ManagedBy: job.Spec.ManagedBy,
		},
		Status: job.Status,
	}
	trimmed.CreationTimestamp, trimmed.DeletionTimestamp = job.CreationTimestamp, job.DeletionTimestamp
	trimmed.Status.UncountedTerminatedPods = nil
	for _, key := range view.Annotations {
		if value, is := job.Annotations[key]; is {
			metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, key, text.Clean(value, text.MaxMessage))
		}
	}
	if len(job.Labels) <= maxLabels {
		trimmed.Labels = job.Labels
	}
	return trimmed, nil
}

// maxLabels is how many labels a Job may have that one can search for.
const maxLabels = 100

// maxEvent bounds what is kept of an event: API servers bound the texts of some events only.
const maxEvent = 2 << 10

// trimEvent is what the pages show of an event; nil: it's too large.
func trimEvent(e *corev1.Event) *corev1.Event {
	meta := identity(&e.ObjectMeta)
	meta.CreationTimestamp = e.CreationTimestamp
	about := e.InvolvedObject
	trimmed := &corev1.Event{
		ObjectMeta:     meta,
		InvolvedObject: corev1.ObjectReference{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: about.UID},
		Type:           e.Type, Reason: e.Reason, Message: text.Clean(e.Message, text.MaxMessage), Count: e.Count, Series: e.Series,
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
		ReportingController: e.ReportingController,
	}
	if trimmed.Size() > maxEvent {
		return nil
	}
	return trimmed
}

func trimWorker(object any) (any, error) {
	if w, ok := object.(*v1alpha1.WorkerCluster); ok {
		w.ManagedFields = nil
	}
	return object, nil
}

func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion}
}

// trimPod keeps what the pages show of a Pod.
func trimPod(pod *corev1.Pod) {
	pod.ManagedFields, pod.Labels, pod.OwnerReferences = nil, nil, nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: names(pod.Spec.Containers), InitContainers: names(pod.Spec.InitContainers)}
	is := &pod.Status
	trimmed := corev1.PodStatus{
		Phase: is.Phase, Reason: text.Clean(is.Reason, text.MaxReason), StartTime: is.StartTime,
		ContainerStatuses: statuses(is.ContainerStatuses), InitContainerStatuses: statuses(is.InitContainerStatuses),
	}
	if podutils.IsPodReady(pod) {
		trimmed.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	pod.Status = trimmed
}

func names(containers []corev1.Container) []corev1.Container {
	named := make([]corev1.Container, len(containers))
	for i := range containers {
		named[i].Name = containers[i].Name
	}
	return named
}

func statuses(of []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(of))
	for i, s := range of {
		trimmed[i] = corev1.ContainerStatus{Name: s.Name, Ready: s.Ready, RestartCount: s.RestartCount}
		state := &trimmed[i].State
		if s.State.Waiting != nil {
			state.Waiting = &corev1.ContainerStateWaiting{Reason: text.Clean(s.State.Waiting.Reason, text.MaxReason)}
		}
		if ended := s.State.Terminated; ended != nil {
			state.Terminated = &corev1.ContainerStateTerminated{Reason: text.Clean(ended.Reason, text.MaxReason), ExitCode: ended.ExitCode}
		}
	}
	return trimmed
}
