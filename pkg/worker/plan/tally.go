package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Tally is by how much a status moves the counters on, for the metrics.
type Tally struct {
	Succeeded, Failed               int // Pods
	IndexesSucceeded, IndexesFailed int
}

// tally leaves indexes that were scaled away out of both sides, so that no difference is negative.
func (f *facts) tally(before, after *batchv1.JobStatus) Tally {
	t := Tally{
		Succeeded: int(after.Succeeded - before.Succeeded),
		Failed:    int(after.Failed - before.Failed),
	}
	if !f.indexed {
		return t
	}
	count := func(text string) int { return intervals.ParseLenient(text, f.completions).Len() }
	t.IndexesSucceeded = count(after.CompletedIndexes) - count(before.CompletedIndexes)
	t.Succeeded = t.IndexesSucceeded
	t.IndexesFailed = max(0, count(ptr.Deref(after.FailedIndexes, ""))-count(ptr.Deref(before.FailedIndexes, "")))
	return t
}

// CreateReason is why a sync creates Pods, as the metrics name it.
type CreateReason string

const (
	createNew                   CreateReason = "new"
	recreateFailed              CreateReason = "recreate_failed"
	recreateTerminatingOrFailed CreateReason = "recreate_terminating_or_failed"
)

func (f *facts) createReason() CreateReason {
	onlyFailed := ptr.Deref(f.job.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed) == batchv1.Failed
	switch {
	case onlyFailed && f.failed > 0:
		return recreateFailed
	case f.failed > 0 || f.terminating > 0:
		return recreateTerminatingOrFailed
	}
	return createNew
}
