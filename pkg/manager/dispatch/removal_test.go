package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The mirrors of a Job are deleted as the Job is. Those that it has no use for, or that are in the
// way of its next one, are deleted in the foreground whatever becomes of the Job: what starts then
// doesn't run beside their Pods.
func TestDeletionPropagates(t *testing.T) {
	const late = 90 * time.Second
	const foreground, background, orphan = metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan
	placed := hubJob(placedOn("a"))
	leaving := hubJob(placedOn("a"), deleting)
	other := func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "another-uid" }
	moved := func() *Snapshot {
		return look(movedJob(deleting), at("a", mirrorOf(hubJob())), at("b", mirrorOf(hubJob())))
	}
	for name, row := range map[string]struct {
		given  *Snapshot
		policy metav1.DeletionPropagation
		then   []string
	}{
		"foreground":                   {look(leaving, at("a", mirrorOf(placed))), foreground, []string{"delete in a"}},
		"background":                   {look(leaving, at("a", mirrorOf(placed))), background, []string{"delete behind in a"}},
		"orphan":                       {look(leaving, at("a", mirrorOf(placed))), orphan, []string{"orphan in a"}},
		"orphan, for too long":         {look(leaving, at("a", mirrorOf(placed), asked(late))), orphan, []string{"remove finalizer", "orphan in a"}},
		"background, for too long":     {look(leaving, at("a", mirrorOf(placed), asked(late))), background, []string{"remove finalizer", "suspend and delete behind in a"}},
		"not shown yet":                {look(leaving, at("a", mirrorOf(placed))), "", nil},
		"not shown yet, and no mirror": {look(leaving, at("a", nil)), "", nil},
		"the mirror is gone":           {look(leaving, at("a", nil)), background, []string{"confirm that a is left", "remove finalizer"}},
		"the mirror stays":             {look(leaving, at("a", mirrorOf(placed, deleting))), background, nil},
		"the worker is away":           {look(leaving, at("a", mirrorOf(placed), unreachable)), background, nil},
		"the worker is lost":           {look(leaving, at("a", mirrorOf(placed), lost)), background, []string{"remove finalizer"}},
		"during a move":                {moved(), background, []string{"delete behind in b & delete behind in a"}},
		"with an earlier Job's mirror": {look(leaving, at("a", mirrorOf(placed, other))), background, []string{"remove finalizer", "delete in a if gone from hub"}},
		"with a stale mirror":          {look(leaving, at("a", nil), at("b", mirrorOf(placed))), background, []string{"confirm that a is left", "remove finalizer", "suspend and delete in b if stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			row.given.Deletion = row.policy
			checkDecision(t, row.given, Deleting, row.then)
		})
	}
}
