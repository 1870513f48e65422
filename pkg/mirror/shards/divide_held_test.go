package shards

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// The user has lowered the parallelism to 1. A worker without a part is asked to give back indexes
// that wait there for their next Pod, and can't: it gets the part, though another one has room.
func TestShardThatCannotGiveBackGetsAPart(t *testing.T) {
	job := &batchv1.Job{Spec: batchv1.JobSpec{
		Completions: ptr.To[int32](5), Parallelism: ptr.To[int32](1), CompletionMode: ptr.To(batchv1.IndexedCompletion),
	}}
	job.Status.CompletedIndexes = "0-2"
	present := Placement{Shards: []Shard{
		{Worker: "done", Amount: Amount{Indexes: intervals.Range(0, 2)}, State: State{Parallelism: 1}},
		{Worker: "held", Amount: Amount{Indexes: intervals.Range(2, 5)}, State: State{Returning: "3,4"}},
	}}
	rooms := []Room{
		{Worker: "done", Pods: 4, Open: true, Idle: true},
		{Worker: "held", Pods: 4, Open: true, Elastic: true, Known: true, Held: intervals.Range(2, 5)},
	}
	for range 3 {
		present = Divide(job, present, rooms, NoLimit)
		if done, held := present.Shards[0], present.Shards[1]; done.Parallelism != 0 || held.Parallelism != 1 || held.Indexes.String() != "2-4" {
			t.Fatalf("divided as %+v", present)
		}
	}
}
