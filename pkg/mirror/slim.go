package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Slim drops from a Job what nobody reads once it has ended: its Pod template, which is most of it.
// It changes the Job itself, before it gets into a cache: most of the Jobs of a hub have ended.
//
// Neither Drift nor Reflect read the template of a Job that has ended; nothing is created from it
// any more.
func Slim(job *batchv1.Job) {
	job.ManagedFields = nil
	if Finished(job) {
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
}
