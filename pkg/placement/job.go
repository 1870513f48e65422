package placement

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// What is known of a Job's Pods, which are all alike.
type (
	// Shape is what decides on which nodes a Pod fits.
	Shape = capacity.Shape
	// Reads are what a Job is judged by that is gathered only where some Job needs it.
	Reads = scheduling.Reads
	// Answer says whether a Job fits in a worker.
	Answer = scheduling.Answer
)

// NewJob reads a Job, to be judged on Snapshots one after the other:
//
//	answer := placement.NewJob(job).Judge(snapshot, pods)
func NewJob(job *batchv1.Job) *scheduling.Job { return scheduling.NewJob(job) }

// NewGroup reads a Job and its mates, to be judged together as a Job is by itself.
func NewGroup(job *scheduling.Job, mates []Mate) *scheduling.Group {
	return scheduling.NewGroup(job, mates)
}

// ShapeOf is the Shape of the Pods that a template makes, without what would make a comparison
// long.
func ShapeOf(template *corev1.PodTemplateSpec) *Shape { return capacity.LightShapeOf(template) }

// IsHeavy reports whether it's much work to find out which nodes suit Pods of a spec.
func IsHeavy(spec *corev1.PodSpec) bool { return capacity.IsHeavy(spec) }

// RequestsOf are what a Pod of a spec requests, with one under Pods. Limits stand in for missing
// requests.
func RequestsOf(spec *corev1.PodSpec) Resources { return capacity.TemplateRequests(spec) }

// ByResources is a template whose Pods request as much as those of another, and want nothing
// besides.
func ByResources(template *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	requests := RequestsOf(&template.Spec).List()
	delete(requests, corev1.ResourcePods)
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
	}}
}

// ReadsOf are what the Pods of a spec read.
func ReadsOf(spec *corev1.PodSpec) Reads { return scheduling.ReadsOf(spec) }
