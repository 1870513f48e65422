package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const closed = "namespace team is not dispatched"

// TestNamespaceNotDispatched has Jobs of a namespace that is not dispatched.
func TestNamespaceNotDispatched(t *testing.T) {
	other := func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "another-uid" }
	away := func(w *Worker) { w.Loss = Loss{Lost: true, Since: noon.Add(-time.Hour)} }
	reserved := func(s *Snapshot) *Snapshot {
		s.Admission = Admission{Checked: true, QuotaReserved: true, Workers: []string{"a"}}
		return s
	}
	placed := hubJob(placedOn("a"))
	rows := map[string]decision{
		"a new Job":                        {look(hubJob()), NotDispatched, nil},
		"a suspended one":                  {look(hubJob(suspendedJob)), NotDispatched, nil},
		"one with quota":                   {reserved(look(hubJob(suspendedJob))), NotDispatched, nil},
		"one that its user has placed":     {look(placed, at("a", nil)), NotDispatched, nil},
		"... suspended, with quota":        {reserved(look(hubJob(placedOn("a"), suspendedJob), at("a", nil))), NotDispatched, nil},
		"... on a worker that isn't there": {look(placed, at("a", nil, unregistered)), NotDispatched, nil},
		"... on one that's away: it stays": {look(placed, at("a", nil, unreachable)), WorkerUnreachable, nil},
		"... where somebody's Job is":      {look(placed, at("a", mirrorOf(hubJob(), other))), NotDispatched, []string{"delete in a if gone from hub"}},
		"one whose mirror was deleted":     {look(placed, at("a", mirrorOf(placed, deleting))), MirrorDeleted, nil},
		"one that runs, and has progress":  {look(placed, at("a", mirrorOf(placed, running(1)))), Mirrored, []string{"status"}},
		// placement finds no worker
		"one that runs, its worker is lost": {look(placed, at("a", mirrorOf(placed), unreachable, away)), WorkerLost, []string{"move from a"}},
		"one that has finished":             {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed, complete))), Finished, nil},
		"one that is deleted":               {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed))), Deleting, []string{"delete in a"}},
		"... and its mirror is gone":        {look(hubJob(placedOn("a"), deleting), at("a", nil)), Deleting, []string{"confirm that a is left", "remove finalizer"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			row.given.NotDispatched = closed
			plan := checkDecision(t, row.given, row.want, row.then)
			if held := row.want == NotDispatched; held && (len(plan.Reserve) > 0 || !plan.AwaitsNamespace || len(plan.Reports) != 1) {
				t.Errorf("reserves %v, awaits the namespace: %v, reports %v", plan.Reserve, plan.AwaitsNamespace, plan.Reports)
			}
		})
	}
}

// The label may have been set just before the Job was created, and its event be on its way.
func TestNamespaceNotDispatchedIsReportedLater(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0: namespaceGrace, time.Second: namespaceGrace - time.Second, namespaceGrace: 0, time.Hour: 0,
		-time.Hour: namespaceGrace, // the hub's clock is ahead
	} {
		s := look(hubJob(func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(noon.Add(-age)) }))
		s.NotDispatched = closed
		plan := Decide(s)
		if plan.After != want || (len(plan.Reports) == 0) != (want > 0) {
			t.Errorf("at the age of %s: again after %s with %v, want %s", age, plan.After, plan.Reports, want)
		}
	}
}
