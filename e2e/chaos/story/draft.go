package story

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	onClusterLost = v1alpha1.AnnotationOnClusterLost
	restart       = "Restart"
	wait          = "Wait"
	// container of all Pods.
	container = "main"
)

// draft has what stories are made with.
type draft struct{ random *rand.Rand }

// between draws a number, both ends included.
func (d *draft) between(least, most int) int32 { return int32(least + d.random.IntN(most-least+1)) }

// seconds draws a time in steps of 100 ms.
func (d *draft) seconds(least, most int) time.Duration {
	return time.Duration(d.between(least*10, most*10)) * 100 * time.Millisecond
}

// option edits a Job that is being made.
type option func(*batchv1.Job)

// job makes a Job whose Pods run for that long.
func (d *draft) job(runFor time.Duration, options ...option) *batchv1.Job {
	managedBy := v1alpha1.ManagedByDispatcher
	stop := d.between(0, 8) * 100 // milliseconds
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}},
		Spec: batchv1.JobSpec{ManagedBy: &managedBy, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				rig.LabelRunFor: runFor.String(), rig.LabelStopAfter: fmt.Sprintf("%dms", stop),
			}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: container, Image: "example.org/main"}},
			},
		}},
	}
	for _, o := range options {
		o(j)
	}
	return j
}

func label(key, value string) option {
	return func(j *batchv1.Job) { j.Spec.Template.Labels[key] = value }
}

func exitCode(code int) option    { return label(rig.LabelExitCode, strconv.Itoa(code)) }
func failFirst(pods int) option   { return label(rig.LabelFailFirst, strconv.Itoa(pods)) }
func runForever(j *batchv1.Job)   { label(rig.LabelRunFor, rig.RunForever)(j) }
func backoffLimit(n int32) option { return func(j *batchv1.Job) { j.Spec.BackoffLimit = &n } }
func completions(n int32) option  { return func(j *batchv1.Job) { j.Spec.Completions = &n } }
func parallelism(n int32) option  { return func(j *batchv1.Job) { j.Spec.Parallelism = &n } }

func backoffLimitPerIndex(n int32) option {
	return func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = &n }
}

func indexes(n, atOnce int32) option {
	return func(j *batchv1.Job) {
		mode := batchv1.IndexedCompletion
		j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = &mode, &n, &atOnce
	}
}

func suspended(j *batchv1.Job) {
	yes := true
	j.Spec.Suspend = &yes
}

// maxClusters lets a Job run on several workers at once.
func maxClusters(limit string) option {
	return func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationMaxClusters] = limit }
}

// cpu is what each Pod requests.
func cpu(quantity string) option {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
	}
}

func whenLost(policy string) option {
	return func(j *batchv1.Job) { j.Annotations[onClusterLost] = policy }
}

// onExit has a Pod failure policy act on an exit code.
func onExit(action batchv1.PodFailurePolicyAction, code int32) option {
	return func(j *batchv1.Job) {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: action,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
			},
		}}}
	}
}
