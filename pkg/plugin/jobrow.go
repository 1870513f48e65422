package plugin

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// knownJob is what a row shows of a Job, and what was printed of it; nil: nothing.
type knownJob struct {
	row     *batchv1.Job
	printed *jobview.Status
}

// rowOf has what users see of a Job, and nothing else of it that may be large.
func rowOf(job *batchv1.Job) *batchv1.Job {
	row := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, UID: job.UID, CreationTimestamp: job.CreationTimestamp, DeletionTimestamp: job.DeletionTimestamp,
		},
		Spec: batchv1.JobSpec{
			ManagedBy: job.Spec.ManagedBy, Suspend: job.Spec.Suspend, Parallelism: job.Spec.Parallelism, Completions: job.Spec.Completions,
		},
		Status: job.Status,
	}
	if selector := job.Annotations[v1alpha1.AnnotationClusterSelector]; selector != "" {
		row.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: text.Clean(selector, text.MaxMessage)}
	}
	row.Status.CompletedIndexes, row.Status.FailedIndexes, row.Status.UncountedTerminatedPods = "", nil, nil
	return row
}
