package placement

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// PodsWanted is how many Pods a Job would run at once if it ran now: its parallelism, but no more
// than the completions that its status leaves. A Job that is suspended counts as if it were
// resumed.
func PodsWanted(job *batchv1.Job) int64 {
	parallelism := int64(1)
	if job.Spec.Parallelism != nil {
		parallelism = int64(*job.Spec.Parallelism)
	}
	if job.Spec.Completions == nil {
		return max(parallelism, 0)
	}
	left := int64(*job.Spec.Completions) - int64(job.Status.Succeeded)
	if failed := job.Status.FailedIndexes; failed != nil {
		left -= int64(intervals.ParseLenient(*failed, int(*job.Spec.Completions)).Len())
	}
	return max(min(parallelism, left), 0)
}
