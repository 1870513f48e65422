package scheduling

import (
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// Job is what the scheduler reads of the Pods of one Job, which are all alike. It's judged in one
// worker after the other: all but the work that is left is immutable.
type Job struct {
	namespace string
	labels    labels.Set
	spec      *corev1.PodSpec
	// Expired, if it isn't nil, says that no time is left to judge the Job by all that it has.
	Expired func() bool
	// left is the work that it may still take to judge the Job, in all workers. lightly: that isn't
	// much, and the Job isn't judged by less than it has.
	left    *int
	lightly bool
	// reading is the work that it took to read its selectors.
	reading int
	// unjudged are the fields that have too much to be judged. isBare: so had what was left.
	unjudged []string
	isBare   bool
	// shape is by what nodes suit them, and what they request of those.
	shape *capacity.Shape
	// insufficient are the requested resources, with the scheduler's words if there is too little.
	insufficient []request

	reads        nodeRead
	nodeWork     capacity.NodeWork
	ports        []capacity.HostPort
	affinity     []term
	antiAffinity []term
	spread       []constraint
	// gang is how many Pods must fit at once, whatever else: those of a gang are bound together. One
	// if they're none.
	gang int64
	// mates are the Jobs with whose Pods it is judged together.
	mates []*Job
	// changes by admission plugins: many workers have the same LimitRanges and RuntimeClasses.
	changes *kept[digest.Digest, changed]
	// quotaRead is what quotas go by in each Pod.
	quotaRead func() *quotaRead
}

// NewJob reads a Job as the hub or the worker has it.
func NewJob(job *batchv1.Job) *Job {
	j := newJob(podOf(job))
	j.gang = gangOf(job)
	return j
}

func gangOf(job *batchv1.Job) int64 {
	s := job.Spec.Scheduling
	if s == nil || s.SchedulingPolicy == nil || s.SchedulingPolicy.Gang == nil {
		return 1
	}
	return max(int64(ptr.Deref(s.SchedulingPolicy.Gang.MinCount, ptr.Deref(job.Spec.Parallelism, 1))), 1)
}

func newJob(pod *corev1.Pod) *Job {
	spec, unjudged := capacity.Judged(&pod.Spec)
	pod = &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: *spec}
	j := &Job{
		reading:      capacity.ReadWork(&pod.Spec),
		unjudged:     unjudged,
		namespace:    pod.Namespace,
		labels:       pod.Labels,
		spec:         &pod.Spec,
		shape:        capacity.ShapeOf(&corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}),
		reads:        nodeReadBy(&pod.Spec),
		ports:        capacity.HostPorts(&pod.Spec),
		affinity:     termsOf(pod.Namespace, labels.Set(pod.Labels), capacity.RequiredAffinity(&pod.Spec)),
		antiAffinity: termsOf(pod.Namespace, labels.Set(pod.Labels), capacity.RequiredAntiAffinity(&pod.Spec)),
		spread:       constraintsOf(pod),
		changes:      &kept[digest.Digest, changed]{},
		quotaRead:    sync.OnceValue(func() *quotaRead { return quotaReadOf(&corev1.Pod{Spec: pod.Spec}) }),
	}
	j.left = ptr.To(mostWork - j.reading)
	j.insufficient = requestsOf(j.shape.Unit())
	j.nodeWork = capacity.NodeWorkOf(&pod.Spec)
	return j
}

// with is the Job with another spec of its Pods.
func (j *Job) with(spec *corev1.PodSpec) *Job {
	pod := &corev1.Pod{Spec: *spec}
	pod.Namespace, pod.Labels = j.namespace, j.labels
	changed := newJob(pod)
	changed.unjudged = slices.Concat(j.unjudged, changed.unjudged)
	changed.mates = j.mates
	changed.gang, changed.isBare, changed.Expired, changed.left, changed.lightly = j.gang, j.isBare, j.Expired, j.left, j.lightly
	return changed
}

// podOf is a Pod as the Job controller makes it. The label of the completion index is left out: it
// is the one thing in which the Job's Pods differ.
func podOf(job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = job.Namespace
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for _, key := range []string{batchv1.JobNameLabel, "job-name"} {
		pod.Labels[key] = job.Name
	}
	for _, key := range []string{batchv1.ControllerUidLabel, "controller-uid"} {
		pod.Labels[key] = string(job.UID)
	}
	tolerateUnready(&pod.Spec)
	fillRequests(&pod.Spec)
	return pod
}

// tolerateUnready adds what the API server's admission plugin DefaultTolerationSeconds does: Pods
// may be on nodes that aren't ready, for some minutes, if only NoExecute says that.
func tolerateUnready(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		own := slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !own {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			})
		}
	}
}
