package mirror

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// A cache holds a Pod template that has maxHeldTemplate bytes of protobuf at most, and that takes
// maxDecodedTemplate bytes at most when it's decoded. Those of nearly all Jobs have less than a
// tenth of that. What has alwaysHeldTemplate bytes of protobuf doesn't take more.
const (
	maxHeldTemplate    = 64 << 10
	maxDecodedTemplate = 128 << 10
	alwaysHeldTemplate = 1 << 10
)

// Slim removes from a Job what a cache needn't hold, before it's stored: the Job itself is changed.
// A Job that has ended becomes light. Neither Drift nor Reflect reads the template of such a Job,
// and Project isn't called for it.
func Slim(job *batchv1.Job) {
	job.ManagedFields = nil
	if Finished(job) {
		Lighten(job)
	}
}

// Lighten removes the Pod template, and all else that can be large and is read only together with
// it: the users' labels and annotations, and what is in the policies. That there is a policy stays
// visible, and so does the Pods' grace period. A mirror keeps the labels and annotations that its
// record names.
//
// Before a light hub Job is passed to Project or Drift, it must be read again. A light mirror can
// be passed to all functions.
func Lighten(job *batchv1.Job) {
	last, _ := readRecord(job)
	job.Labels = heldKeys(job.Labels, last.Labels)
	job.Annotations = heldKeys(job.Annotations, last.Annotations)
	job.Spec.Template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: job.Spec.Template.Spec.TerminationGracePeriodSeconds,
	}}
	if job.Spec.PodFailurePolicy != nil {
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	}
	if job.Spec.SuccessPolicy != nil {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{}
	}
}

// Light reports whether a Job is held without its Pod template. An API server stores none without a
// container or a restart policy.
func Light(job *batchv1.Job) bool {
	spec := &job.Spec.Template.Spec
	return len(spec.Containers) == 0 && spec.RestartPolicy == ""
}

// SlimMirror is Slim for the mirrors in a worker. A mirror with a large Pod template becomes light,
// too, and what the worker added to the labels and annotations is removed.
func SlimMirror(job *batchv1.Job) {
	Slim(job)
	if size := job.Spec.Template.Size(); size > maxHeldTemplate ||
		size > alwaysHeldTemplate && decoded.Size(&job.Spec.Template) > maxDecodedTemplate {
		Lighten(job)
	}
	last, known := readRecord(job)
	if known {
		job.Labels = heldKeys(job.Labels, last.Labels)
		job.Annotations = heldKeys(job.Annotations, last.Annotations)
	}
	job.OwnerReferences = nil
}

// heldKeys are the labels or annotations that are Jobferry's or Kueue's, and those of the record.
func heldKeys(all map[string]string, recorded []string) map[string]string {
	held := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, v1alpha1.KeyPrefix) || strings.HasPrefix(key, kueuePrefix) {
			held[key] = value
		}
	}
	for _, key := range recorded {
		if value, ok := all[key]; ok {
			held[key] = value
		}
	}
	return held
}
