package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Slim removes the Pod template, which is most of a Job, from a Job that has ended. It changes the
// Job itself, before a cache stores it: most of the Jobs of a hub have ended.
//
// Neither Drift nor Reflect reads the template of a Job that has ended, and Project isn't called
// for it.
func Slim(job *batchv1.Job) {
	job.ManagedFields = nil
	if Finished(job) {
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
}
