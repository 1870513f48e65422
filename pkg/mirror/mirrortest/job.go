// Package mirrortest builds Jobs for tests: fluent, with defaults as the API server sets them. Each
// method changes the Job and returns it.
package mirrortest

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// Job is a Job in the making.
type Job struct{ job batchv1.Job }

// New returns a single-Pod Job in the namespace "team", as a hub's API server would have stored it.
// Its UID is "uid-" and the name.
func New(name string) *Job {
	uid := "uid-" + name
	generated := map[string]string{
		"controller-uid":           uid,
		"job-name":                 name,
		batchv1.ControllerUidLabel: uid,
		batchv1.JobNameLabel:       name,
	}
	return &Job{batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID(uid), ResourceVersion: "1", Generation: 1,
		},
		Spec: batchv1.JobSpec{
			Parallelism:          ptr.To[int32](1),
			Completions:          ptr.To[int32](1),
			BackoffLimit:         ptr.To[int32](6),
			CompletionMode:       ptr.To(batchv1.NonIndexedCompletion),
			Suspend:              ptr.To(false),
			ManualSelector:       ptr.To(false),
			PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: uid}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: generated},
				Spec: corev1.PodSpec{
					RestartPolicy:                 corev1.RestartPolicyNever,
					TerminationGracePeriodSeconds: ptr.To[int64](30),
					DNSPolicy:                     corev1.DNSClusterFirst,
					SchedulerName:                 corev1.DefaultSchedulerName,
					SecurityContext:               &corev1.PodSecurityContext{},
					Containers: []corev1.Container{{
						Name: "main", Image: "busybox:1",
						ImagePullPolicy:          corev1.PullIfNotPresent,
						TerminationMessagePath:   corev1.TerminationMessagePathDefault,
						TerminationMessagePolicy: corev1.TerminationMessageReadFile,
					}},
				},
			},
		},
	}}
}

// From continues with a copy of a Job.
func From(job *batchv1.Job) *Job { return &Job{*job.DeepCopy()} }

// Obj returns the Job.
func (j *Job) Obj() *batchv1.Job { return j.job.DeepCopy() }

// Do changes the Job by a function, for what has no method.
func (j *Job) Do(f func(*batchv1.Job)) *Job {
	f(&j.job)
	return j
}

// Completions sets a fixed completion count; parallelism stays.
func (j *Job) Completions(n int32) *Job {
	j.job.Spec.Completions = ptr.To(n)
	return j
}

// Parallelism sets the parallelism.
func (j *Job) Parallelism(n int32) *Job {
	j.job.Spec.Parallelism = ptr.To(n)
	return j
}

// WorkQueue removes the completion count.
func (j *Job) WorkQueue(parallelism int32) *Job {
	j.job.Spec.Completions = nil
	return j.Parallelism(parallelism)
}

// Indexed makes it Indexed with n completions; parallelism stays.
func (j *Job) Indexed(n int32) *Job {
	j.job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	return j.Completions(n)
}

// BackoffLimitPerIndex sets the limit per index.
func (j *Job) BackoffLimitPerIndex(n int32) *Job {
	j.job.Spec.BackoffLimitPerIndex = ptr.To(n)
	return j
}

// Suspend sets spec.suspend.
func (j *Job) Suspend(s bool) *Job {
	j.job.Spec.Suspend = ptr.To(s)
	return j
}

// Generation sets the generation: above 1 the spec has been changed.
func (j *Job) Generation(g int64) *Job {
	j.job.Generation = g
	return j
}

// ManagedBy sets spec.managedBy.
func (j *Job) ManagedBy(name string) *Job {
	j.job.Spec.ManagedBy = ptr.To(name)
	return j
}

// Label sets a label.
func (j *Job) Label(key, value string) *Job {
	metav1.SetMetaDataLabel(&j.job.ObjectMeta, key, value)
	return j
}

// Annotation sets an annotation.
func (j *Job) Annotation(key, value string) *Job {
	metav1.SetMetaDataAnnotation(&j.job.ObjectMeta, key, value)
	return j
}

// Kept sets what the manager keeps of a hub Job.
func (j *Job) Kept(key hubstate.Key, value string) *Job {
	hubstate.Set(&j.job, hubstate.Changes{key: value})
	return j
}

// Started sets status.startTime.
func (j *Job) Started(at time.Time) *Job {
	j.job.Status.StartTime = ptr.To(metav1.NewTime(at))
	return j
}

// Pods sets the counters of Pods that are there now.
func (j *Job) Pods(active, ready, terminating int32) *Job {
	j.job.Status.Active, j.job.Status.Ready, j.job.Status.Terminating = active, ptr.To(ready), ptr.To(terminating)
	return j
}

// Counted sets the counters of Pods that have ended.
func (j *Job) Counted(succeeded, failed int32) *Job {
	j.job.Status.Succeeded, j.job.Status.Failed = succeeded, failed
	return j
}

// CompletedIndexes sets status.completedIndexes, not status.succeeded.
func (j *Job) CompletedIndexes(text string) *Job {
	j.job.Status.CompletedIndexes = text
	return j
}

// FailedIndexes sets status.failedIndexes.
func (j *Job) FailedIndexes(text string) *Job {
	j.job.Status.FailedIndexes = ptr.To(text)
	return j
}

// Completed sets status.completionTime.
func (j *Job) Completed(at time.Time) *Job {
	j.job.Status.CompletionTime = ptr.To(metav1.NewTime(at))
	return j
}

// True adds a condition with the status True.
func (j *Job) True(t batchv1.JobConditionType, reason string, at time.Time) *Job {
	return j.Condition(t, corev1.ConditionTrue, reason, at)
}

// Condition adds a condition.
func (j *Job) Condition(t batchv1.JobConditionType, status corev1.ConditionStatus, reason string, at time.Time) *Job {
	j.job.Status.Conditions = append(j.job.Status.Conditions, batchv1.JobCondition{
		Type: t, Status: status, Reason: reason,
		LastProbeTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at),
	})
	return j
}

// Shows gives a Job a status, beside what the manager keeps of it.
func Shows(j *batchv1.Job, status batchv1.JobStatus) {
	kept := slices.DeleteFunc(slices.Clone(j.Status.Conditions), func(c batchv1.JobCondition) bool { return !hubstate.IsOurs(c.Type) })
	j.Status = status
	j.Status.Conditions = append(slices.Clone(status.Conditions), kept...)
}
