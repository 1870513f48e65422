package dispatch

import (
	"fmt"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func tookOver(w *Worker) { w.TookOver = true }

func heldElsewhere(w *Worker) { w.HeldElsewhere = true }

// counted: the account has the mirror that mirrorOf makes.
func counted(worker string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		account := usage.Account{{Worker: worker, UID: mirrorOf(j).UID}}
		hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String()})
	}
}

// The hub was put back to a backup, and a worker has a mirror that its placement doesn't name.
func TestDecideAfterTheHubWasPutBack(t *testing.T) {
	placed := hubJob(placedOn("a"))
	checkDecisions(t, map[string]decision{
		"a Job that never was placed":            {look(hubJob(), at("b", mirrorOf(hubJob()), tookOver)), PlacementMissing, []string{"restore to b"}},
		"... once its worker may be written to":  {look(hubJob(), at("b", mirrorOf(hubJob()), unreachable, heldElsewhere)), PlacementMissing, nil},
		"... but not where it mayn't be":         {look(hubJob(), at("b", mirrorOf(hubJob()), tookOver, unwanted)), Unplaced, []string{"place", "suspend and delete in b if stale"}},
		"... also if it was elsewhere then":      {look(placed, at("a", nil), at("b", mirrorOf(hubJob()), tookOver)), PlacementMissing, []string{"restore to b"}},
		"... but not if it still is":             {look(placed, at("a", mirrorOf(placed)), at("b", mirrorOf(hubJob()), tookOver)), Mirrored, []string{"suspend and delete in b if stale"}},
		"... nor as long as that isn't known":    {look(placed, at("a", nil, unreachable), at("b", mirrorOf(hubJob()), tookOver)), WorkerUnreachable, nil},
		"... nor if it's known, but unreachable": {look(placed, at("a", mirrorOf(placed), unreachable), at("b", mirrorOf(hubJob()), tookOver)), WorkerUnreachable, []string{"suspend and delete in b if stale"}},
		"... but if it's lost":                   {look(placed, at("a", nil, lost), at("b", mirrorOf(hubJob()), tookOver)), PlacementMissing, []string{"restore to b"}},
		"... nor if it was given up there":       {look(hubJob(counted("b")), at("b", mirrorOf(hubJob()), tookOver)), Unplaced, []string{"place", "suspend and delete in b if stale"}},
	})
}

// However many workers have shards that the placement lacks, what it lacks is found out once.
func TestManyShardsThatThePlacementLacks(t *testing.T) {
	const count = 500
	hub := hubJob(func(j *batchv1.Job) {
		j.Annotations[v1alpha1.AnnotationMaxClusters] = "1000"
		j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](count), ptr.To[int32](count)
	})
	var workers []Worker
	for i := range count {
		m := mirrorOf(hub)
		m.Annotations[v1alpha1.AnnotationIndexes] = strconv.Itoa(i)
		workers = append(workers, at(fmt.Sprint("w", i), m, unreachable, heldElsewhere))
	}
	s := look(hub, workers...)
	var plan Plan
	cost := costtest.Of(func() { plan = Decide(s) })
	if len(s.missing.in) != count || plan.Situation != PlacementMissing {
		t.Errorf("%d shards are lacking, %s", len(s.missing.in), plan.Situation)
	}
	if cost > 8<<20 {
		t.Errorf("%d MiB for %d workers", cost>>20, count)
	}
}
