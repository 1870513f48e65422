package view

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A worker reports that every second index has completed, as long as that may be.
func TestTheMapOfVeryManyRuns(t *testing.T) {
	var indexes strings.Builder
	for i := 0; indexes.Len() < 760<<10; i += 2 {
		fmt.Fprintf(&indexes, "%d,", i)
	}
	job := &batchv1.Job{}
	job.Spec.CompletionMode, job.Spec.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](MaxIndexes)
	job.Status.CompletedIndexes = strings.TrimSuffix(indexes.String(), ",")
	all := *job.DeepCopy()
	all.Status.CompletedIndexes = fmt.Sprintf("0-%d", MaxIndexes-1)
	if cost := costtest.Of(func() { NewIndexMap(&all, nil) }); cost > 24<<20 {
		t.Errorf("%d MiB are allocated for one run", cost>>20)
	}
	var before, after *IndexMap
	cost := costtest.Of(func() { before = NewIndexMap(job, nil) })
	if len(before.Runs) < 200_000 || cost > 32<<20 {
		t.Errorf("%d MiB are allocated for %d runs", cost>>20, len(before.Runs))
	}
	job.Status.CompletedIndexes = strings.Replace(job.Status.CompletedIndexes, "100,", "101,", 1)
	if after = NewIndexMap(job, nil); after.Version == before.Version {
		t.Error("another map has the same version")
	}
}
