package worker

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// CacheOptions are options of the cache of the manager that [Setup] gets. Its cache has all Pods
// and Jobs of the cluster. With these it holds only what this controller reads: of a Pod that
// another kind of controller owns its name, as metadata, so that it can't be read as a Pod. [Setup]
// works with any other cache as well, but for more memory.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Transform: slimPod},
			&batchv1.Job{}: {Transform: slimJob},
		},
	}
}

// slimJob drops the Pod template of a Job that starts no more Pods.
func slimJob(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil // a tombstone
	}
	job.ManagedFields = nil
	if plan.Finished(job) != nil {
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
	return job, nil
}

// readAnnotations are the annotations of Pods that package plan reads.
var readAnnotations = []string{
	batchv1.JobCompletionIndexAnnotation, batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation,
}

// slimPod keeps what of a Pod this package and package plan read. Applied twice it changes nothing
// more.
func slimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone, or slim already
	}
	others := metav1.GetControllerOfNoCopy(p) != nil && jobRef(p) == nil
	if others && len(p.Finalizers) == 0 {
		// A Pod takes much memory even if it's empty.
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		}}, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
		OwnerReferences: p.OwnerReferences, Finalizers: p.Finalizers,
	}}
	if others {
		return slim, nil
	}
	slim.Labels = p.Labels
	for _, key := range readAnnotations {
		if value, ok := p.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	slim.Spec.NodeName = p.Spec.NodeName
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		slim.Spec.InitContainers = append(slim.Spec.InitContainers, corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy})
	}
	slim.Status.Phase = p.Status.Phase
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		slim.Status.Conditions = append(slim.Status.Conditions,
			corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
	}
	slim.Status.ContainerStatuses = slimStatuses(p.Status.ContainerStatuses)
	slim.Status.InitContainerStatuses = slimStatuses(p.Status.InitContainerStatuses)
	return slim, nil
}

func slimStatuses(all []corev1.ContainerStatus) (slim []corev1.ContainerStatus) {
	for i := range all {
		s := corev1.ContainerStatus{Name: all[i].Name, RestartCount: all[i].RestartCount}
		if end := all[i].State.Terminated; end != nil {
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, FinishedAt: end.FinishedAt}
		}
		slim = append(slim, s)
	}
	return slim
}
