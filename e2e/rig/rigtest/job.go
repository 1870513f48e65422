package rigtest

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig"
)

// Option edits a Job that is being made.
type Option func(*batchv1.Job)

// Job makes a Job with one container; without options it has one Pod, which is never retried in
// place.
func Job(namespace, name string, options ...Option) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "example.org/main"}},
			},
		}},
	}
	for _, option := range options {
		option(job)
	}
	return job
}

// Parallel makes a Job of n completions that all may run at once.
func Parallel(n int32) Option {
	return func(j *batchv1.Job) { j.Spec.Completions, j.Spec.Parallelism = &n, &n }
}

// Indexed makes a Job of n indexes that all may run at once.
func Indexed(n int32) Option {
	mode := batchv1.IndexedCompletion
	return func(j *batchv1.Job) {
		Parallel(n)(j)
		j.Spec.CompletionMode = &mode
	}
}

// BackoffLimit sets how many Pods may fail.
func BackoffLimit(n int32) Option { return func(j *batchv1.Job) { j.Spec.BackoffLimit = &n } }

// Suspended makes a Job that waits to be resumed.
func Suspended() Option {
	yes := true
	return func(j *batchv1.Job) { j.Spec.Suspend = &yes }
}

// ManagedBy names the Job's controller.
func ManagedBy(controller string) Option {
	return func(j *batchv1.Job) { j.Spec.ManagedBy = &controller }
}

// PodLabel sets a label of the Pod template, such as the rig's labels.
func PodLabel(key, value string) Option {
	return func(j *batchv1.Job) { j.Spec.Template.Labels[key] = value }
}

// RunFor is how long each Pod runs.
func RunFor(d time.Duration) Option { return PodLabel(rig.LabelRunFor, d.String()) }

// RunForever lets Pods run until they are deleted.
func RunForever() Option { return PodLabel(rig.LabelRunFor, rig.RunForever) }

// ExitCode is the exit code of each Pod's containers.
func ExitCode(code int) Option { return PodLabel(rig.LabelExitCode, strconv.Itoa(code)) }

// FailFirst lets that many first Pods fail.
func FailFirst(n int) Option { return PodLabel(rig.LabelFailFirst, strconv.Itoa(n)) }

// Complete says whether a Job has ended well.
func Complete(j *batchv1.Job) bool { return HasCondition(batchv1.JobComplete)(j) }

// Failed says whether a Job has ended badly.
func Failed(j *batchv1.Job) bool { return HasCondition(batchv1.JobFailed)(j) }

// Running says whether as many Pods of a Job as that run and are ready.
func Running(pods int32) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return j.Status.Ready != nil && *j.Status.Ready == pods }
}

// HasCondition says whether a condition of a Job is True.
func HasCondition(kind batchv1.JobConditionType) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool {
		for _, c := range j.Status.Conditions {
			if c.Type == kind {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	}
}
