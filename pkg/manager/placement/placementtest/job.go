package placementtest

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/placement"
)

// Job builds a Job.
type Job struct{ job *batchv1.Job }

// NewJob is one Pod, run once, that asks for nothing.
func NewJob(name string) *Job {
	return &Job{&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1),
			Completions: ptr.To[int32](1),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{batchv1.JobNameLabel: name}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "main"}},
				},
			},
		},
	}}
}

// Pods sets parallelism and completions to the same number.
func (j *Job) Pods(n int32) *Job {
	j.job.Spec.Parallelism, j.job.Spec.Completions = &n, &n
	return j
}

// Parallelism alone.
func (j *Job) Parallelism(n int32) *Job {
	j.job.Spec.Parallelism = &n
	return j
}

// WorkQueue is without a fixed number of completions.
func (j *Job) WorkQueue() *Job {
	j.job.Spec.Completions = nil
	return j
}

// Succeeded so many Pods already.
func (j *Job) Succeeded(n int32) *Job {
	j.job.Status.Succeeded = n
	return j
}

// FailedIndexes already, such as "1,3-5".
func (j *Job) FailedIndexes(list string) *Job {
	j.job.Status.FailedIndexes = &list
	return j
}

// Requests of the one container, in pairs: see Resources.
func (j *Job) Requests(pairs ...string) *Job {
	j.job.Spec.Template.Spec.Containers[0].Resources.Requests = Resources(pairs...)
	return j
}

// NodeSelector of the Pods.
func (j *Job) NodeSelector(key, value string) *Job {
	j.job.Spec.Template.Spec.NodeSelector = map[string]string{key: value}
	return j
}

// Tolerates a taint's key, whatever its value and effect.
func (j *Job) Tolerates(key string) *Job {
	spec := &j.job.Spec.Template.Spec
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	return j
}

// OnePerNode has each Pod keep away from the Job's other Pods.
func (j *Job) OnePerNode() *Job {
	j.job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: j.job.Spec.Template.Labels},
		}},
	}}
	return j
}

// With changes anything else.
func (j *Job) With(change func(*batchv1.Job)) *Job {
	change(j.job)
	return j
}

// Obj is the Job.
func (j *Job) Obj() *batchv1.Job { return j.job }

// Shape of the Job's Pods.
func (j *Job) Shape() *placement.Shape { return placement.ShapeOf(&j.job.Spec.Template) }

// Pod is one of the Job's Pods, as the API server has it before it's scheduled.
func (j *Job) Pod(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.job.Namespace, Name: name, UID: types.UID(name), Labels: j.job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(j.job, batchv1.SchemeGroupVersion.WithKind("Job")),
			},
		},
		Spec:   *j.job.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	return pod
}

// Key is the Job's namespace and name.
func (j *Job) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.job.Namespace, Name: j.job.Name}
}
