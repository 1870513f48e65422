package spanning_test

import (
	"math"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// What no one can read stops nothing: the user is told, puts it back, and the Job goes on where it
// is.
func shardsUnreadable(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	placement := s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.Keep("job", hubstate.Changes{hubstate.Shards: "w1=0-4;w2=3-7"})
	s.EventUntil("job", v1alpha1.EventInvalid, "index 3 is in two shards; put the condition jobferry.dev/Placed back as it was, or remove")
	s.exit(0, 0, 1)
	s.Keep("job", hubstate.Changes{hubstate.Shards: placement.Kept()[hubstate.Shards]})
	s.finishAll()
	s.completes(8)
	s.pods.expectOnce(t, 8)
}

// Without its shards, the Job is placed anew from its progress, after all mirrors have gone.
func shardsRemoved(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.exit(0, 0, 7)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 })
	s.Keep("job", hubstate.Changes{hubstate.Shards: "", hubstate.ShardsState: ""})
	s.dividedOver(2)
	s.finishAll()
	s.completes(8)
	s.pods.expectCompleted(t, 8, 1)
}

// The user gives each worker the indexes of the other. Neither is taken at its word for them: the
// mirrors are stopped and replaced, and no index counts as completed that wasn't run. What
// completes before they have stopped runs again.
func shardsSwapped(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	placement := s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.exit(0, 0, 7)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 })
	first, second := &placement.Shards[0], &placement.Shards[1]
	first.Indexes, second.Indexes = second.Indexes, first.Indexes
	s.Keep("job", hubstate.Changes{hubstate.Shards: placement.Kept()[hubstate.Shards]})
	s.finishAll()
	s.completes(8)
	s.pods.expectCompleted(t, 8, math.MaxInt)
}

// Somebody in the worker gives the mirror another shard: it is replaced. The hub believes it
// nothing about indexes that it didn't run.
func mirrorsIndexesForged(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.PatchMirror("w2", "job", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationIndexes+`":"0-7"}}}`)
	s.eventually("the mirror is stopped", func() bool {
		return len(s.pods.list(func(p podIn) bool { return p.worker == "w2" && (p.gone || p.ended()) })) == 4
	})
	s.finishAll()
	s.completes(8)
	s.pods.expectCompleted(t, 8, 1)
}

// A Job that is given more indexes, or fewer, while it runs.
func elastic(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(6), rigtest.RunForever())
	s.runs(6)
	s.exit(0, 0, 5)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 })
	s.Patch("job", `{"spec":{"completions":8,"parallelism":8}}`)
	s.HubJobUntil("job", func(j *batchv1.Job) bool {
		placement, err := shards.Read(j)
		return err == nil && len(placement.Unassigned(j).Indexes) == 0 && settledOrIn(placement).Has(7)
	})
	s.runs(6) // in new mirrors
	s.finishAll()
	s.completes(8)
	s.pods.expectCompleted(t, 8, 1)
}

func settledOrIn(p shards.Placement) intervals.Set {
	var all intervals.Set
	for _, shard := range p.Shards {
		all = all.Union(shard.Indexes)
	}
	return all
}
