package hub

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
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
	job.ManagedFields = nil
	maps.DeleteFunc(job.Annotations, func(key, _ string) bool { return key == corev1.LastAppliedConfigAnnotation })
	job.Spec.Template, job.Spec.Selector, job.Spec.PodFailurePolicy = corev1.PodTemplateSpec{}, nil, nil
	return job, nil
}

// trimEvent keeps what the pages show of an event.
func trimEvent(object any) (any, error) {
	e, ok := object.(*corev1.Event)
	if !ok {
		return object, nil
	}
	meta := identity(&e.ObjectMeta)
	meta.CreationTimestamp = e.CreationTimestamp
	about := e.InvolvedObject
	return &corev1.Event{
		ObjectMeta:     meta,
		InvolvedObject: corev1.ObjectReference{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: about.UID},
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count, Series: e.Series,
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
		ReportingController: e.ReportingController,
	}, nil
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
