package capacitytest

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// JobBuilder builds a Job.
type JobBuilder struct{ job *batchv1.Job }

// NewJob is one Pod, run once, that asks for nothing.
func NewJob(name string) *JobBuilder {
	return &JobBuilder{&batchv1.Job{
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
func (j *JobBuilder) Pods(n int32) *JobBuilder {
	j.job.Spec.Parallelism, j.job.Spec.Completions = &n, &n
	return j
}

// Parallelism alone.
func (j *JobBuilder) Parallelism(n int32) *JobBuilder {
	j.job.Spec.Parallelism = &n
	return j
}

// WorkQueue is without a fixed number of completions.
func (j *JobBuilder) WorkQueue() *JobBuilder {
	j.job.Spec.Completions = nil
	return j
}

// Succeeded so many Pods already.
func (j *JobBuilder) Succeeded(n int32) *JobBuilder {
	j.job.Status.Succeeded = n
	return j
}

// FailedIndexes already, such as "1,3-5".
func (j *JobBuilder) FailedIndexes(list string) *JobBuilder {
	j.job.Status.FailedIndexes = &list
	return j
}

// Requests of the one container, in pairs: see Quantities.
func (j *JobBuilder) Requests(pairs ...string) *JobBuilder {
	j.job.Spec.Template.Spec.Containers[0].Resources.Requests = Quantities(pairs...)
	return j
}

// NodeSelector of the Pods.
func (j *JobBuilder) NodeSelector(key, value string) *JobBuilder {
	j.job.Spec.Template.Spec.NodeSelector = map[string]string{key: value}
	return j
}

// Tolerates a taint's key, whatever its value and effect.
func (j *JobBuilder) Tolerates(key string) *JobBuilder {
	spec := &j.job.Spec.Template.Spec
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	return j
}

// OnePerNode has each Pod keep away from the Job's other Pods.
func (j *JobBuilder) OnePerNode() *JobBuilder {
	j.job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: j.job.Spec.Template.Labels},
		}},
	}}
	return j
}

// With changes anything else.
func (j *JobBuilder) With(change func(*batchv1.Job)) *JobBuilder {
	change(j.job)
	return j
}

// Obj is the Job.
func (j *JobBuilder) Obj() *batchv1.Job { return j.job }

// Pod is one of the Job's Pods, as the API server has it before it's scheduled.
func (j *JobBuilder) Pod(name string) *corev1.Pod {
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
func (j *JobBuilder) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.job.Namespace, Name: j.job.Name}
}

// Bind is a Pod's state once it has a node.
func Bind(pod *corev1.Pod, node string) *corev1.Pod {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	return bound
}

// In is a Pod's state in another phase.
func In(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	next := pod.DeepCopy()
	next.Status.Phase = phase
	return next
}

// NodeAffinity is that of Pods which need a node that one of some terms selects.
func NodeAffinity(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

// NodeTerm selects nodes by one label.
func NodeTerm(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}
