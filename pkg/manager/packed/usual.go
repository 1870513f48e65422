package packed

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// usualBytes are two Jobs, with what hub Jobs and mirrors have. What isn't in them only takes more memory.
func usualBytes() []byte {
	hub, mirror := usualJob(), usualJob()
	hub.Finalizers = []string{v1alpha1.FinalizerMirror}
	hub.Annotations = map[string]string{
		v1alpha1.AnnotationCluster: "worker", v1alpha1.AnnotationPlacedFor: "", v1alpha1.AnnotationMovedFrom: "worker",
		v1alpha1.AnnotationClusterSelector: "tier=", v1alpha1.AnnotationClusterPreference: "tier=; * after 5m",
		v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll, v1alpha1.AnnotationShards: "worker=0-", v1alpha1.AnnotationShardsState: "{}",
		v1alpha1.AnnotationUsage: `[{"worker":"worker","uid":"","requests":{"cpu":"1","memory":"1Gi"},"seconds":1.5,"succeeded":1.5,` +
			`"count":1,"pods":1,"since":1790000000,"at":1790000000.5,"ahead":0.5,"newest":1790000000,"ended":1790000000}]`,
	}
	hub.Spec.ManagedBy, hub.Spec.TTLSecondsAfterFinished = ptr.To(v1alpha1.ManagedByDispatcher), ptr.To[int32](600)
	mirror.Labels[v1alpha1.LabelOrigin] = ""
	mirror.Annotations = map[string]string{
		v1alpha1.AnnotationHubUID: "", v1alpha1.AnnotationIndexes: "0-", v1alpha1.AnnotationIndexesObserved: "0-",
		v1alpha1.AnnotationProjected: `{"managedBy":"` + v1alpha1.ManagedByWorker + `","labels":["app"],"scheduling":"44136fa355b3678a","resources":"","generation":1}`,
	}
	mirror.Spec.Template.Labels[v1alpha1.LabelMirrorID] = ""
	mirror.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByWorker)
	var data []byte
	for _, job := range []*batchv1.Job{mirror, hub} {
		proto, err := job.Marshal()
		if err != nil {
			panic(fmt.Sprintf("marshal a Job: %v", err)) // can't be: it's a constant
		}
		data = append(data, proto...)
	}
	return data
}

// usualJob is what an API server makes of a Job with one container, when it has ended.
func usualJob() *batchv1.Job {
	at := metav1.NewTime(time.Unix(1790000000, 0))
	generated := map[string]string{"app.kubernetes.io/name": "app", "app": "app"}
	for _, key := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		generated[key] = ""
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", UID: "-0000-4000-8000-", Generation: 1, CreationTimestamp: at,
			Labels: map[string]string{"app.kubernetes.io/name": "app", "app": "app", "kueue.x-k8s.io/queue-name": "queue"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "CronJob", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](6),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: ""}},
			ManualSelector: ptr.To(false), CompletionMode: ptr.To(batchv1.NonIndexedCompletion), Suspend: ptr.To(false),
			PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed),
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: generated}, Spec: usualPods()},
		},
		Status: batchv1.JobStatus{
			StartTime: &at, CompletionTime: &at, Succeeded: 1, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
			UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}, CompletedIndexes: "0-9",
		},
	}
	for _, ending := range []struct {
		of              batchv1.JobConditionType
		reason, message string
	}{
		{batchv1.JobSuspended, "JobResumed", "Job resumed"},
		{batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"},
		{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"},
		{batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"},
	} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: ending.of, Status: corev1.ConditionTrue, LastProbeTime: at, LastTransitionTime: at, Reason: ending.reason, Message: ending.message,
		})
	}
	return job
}

func usualPods() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](30), DNSPolicy: corev1.DNSClusterFirst,
		SchedulerName: corev1.DefaultSchedulerName, SecurityContext: &corev1.PodSecurityContext{},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: ptr.To[int32](420)}}}},
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.org/main:v1", Command: []string{"/bin/sh", "-c"},
			Env: []corev1.EnvVar{{Name: "NAME", Value: "value"}},
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
			VolumeMounts:           []corev1.VolumeMount{{Name: "config", MountPath: "/etc/"}},
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			ImagePullPolicy: corev1.PullIfNotPresent,
		}},
	}
}
