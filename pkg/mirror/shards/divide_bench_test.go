package shards

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// A Job of 100,000 indexes, of which each shard has completed a range, and beyond it every second
// index of as many as make up the settled intervals.
func BenchmarkDivide(b *testing.B) {
	for _, workers := range []int{5, 100} {
		for _, settled := range []int{100, 10_000, 50_000} {
			b.Run(fmt.Sprintf("%d workers, %d intervals", workers, settled), func(b *testing.B) {
				job := &batchv1.Job{Spec: batchv1.JobSpec{
					Completions: ptr.To[int32](100_000), Parallelism: ptr.To[int32](10_000),
					CompletionMode: ptr.To(batchv1.IndexedCompletion),
				}}
				var rooms []Room
				for i := range workers {
					rooms = append(rooms, Room{
						Worker: fmt.Sprintf("w%03d", i), Pods: int64(10_000 / workers), Open: true, Elastic: true, Idle: true, Known: true,
					})
				}
				placement := Divide(job, Placement{}, rooms, NoLimit)
				var done []int
				for i := range settled {
					done = append(done, i%workers*(100_000/workers)+i/workers*2)
				}
				job.Status.CompletedIndexes = intervals.Of(done...).String()
				for i, s := range placement.Shards {
					rooms[i].Held = s.Indexes
				}
				for b.Loop() {
					Divide(job, placement, rooms, NoLimit)
				}
			})
		}
	}
}
