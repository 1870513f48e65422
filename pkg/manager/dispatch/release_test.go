package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// asked is a worker that is to remove a mirror, for some time.
func asked(d time.Duration) func(*Worker) {
	return func(w *Worker) { w.ReleaseSince = noon.Add(-d) }
}

// A worker that doesn't remove a mirror holds up the Job that had it for a minute beside its Pods'
// grace period, and no other Job at all.
func TestNothingWaitsForAWorkerThatKeepsAMirror(t *testing.T) {
	const soon, late = 89 * time.Second, 90 * time.Second
	other := func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "another-uid" }
	slowPods := func(j *batchv1.Job) { j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](300) }
	refuses := func(w *Worker) { w.Refusal = "no deletions here" }
	placed := hubJob(placedOn("a"))
	stuck := mirrorOf(placed, deleting)
	notReleased := "NotReleased: Worker a hasn't removed the Job team/train within 1m30s"
	waiting := "NotReleased: Waiting for worker a to remove the Job, for 1m30s at most"
	for name, row := range map[string]struct {
		given   *Snapshot
		want    Situation
		then    []string
		reports string
		after   time.Duration
	}{
		"deleted on the hub":             {look(hubJob(placedOn("a"), deleting), at("a", stuck)), Deleting, nil, "", 30 * time.Second},
		"... for a while":                {look(hubJob(placedOn("a"), deleting), at("a", stuck, asked(soon))), Deleting, nil, waiting, time.Second},
		"... which it refuses to":        {look(hubJob(placedOn("a"), deleting), at("a", stuck, asked(soon), refuses)), Deleting, nil, waiting + ": no deletions here", time.Second},
		"... for too long":               {look(hubJob(placedOn("a"), deleting), at("a", stuck, asked(late))), Deleting, []string{"remove finalizer"}, notReleased, 0},
		"... and not even asked to":      {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed), asked(late))), Deleting, []string{"remove finalizer", "suspend and delete in a"}, notReleased, 0},
		"... and refuses to":             {look(hubJob(placedOn("a"), deleting), at("a", stuck, asked(late), refuses)), Deleting, []string{"remove finalizer"}, notReleased + ": no deletions here", 0},
		"... with Pods that take longer": {look(hubJob(placedOn("a"), deleting, slowPods), at("a", stuck, asked(late))), Deleting, nil, "for 6m0s at most", 270 * time.Second},
		"... cut off again":              {look(hubJob(placedOn("a"), deleting), at("a", stuck, asked(late), lossPending)), Deleting, nil, "Waiting for worker a", 15 * time.Minute},
		"moved away":                     {look(movedJob(), at("a", stuck), at("b", nil)), Handover, nil, "", late},
		"moved away, for too long": {look(movedJob(), at("a", stuck, asked(late)), at("b", nil)), MirrorMissing,
			[]string{"create suspended in b"}, notReleased, 0},
		"... and never stopped": {look(movedJob(), at("a", mirrorOf(placed, running(2)), asked(late)), at("b", nil)), MirrorMissing,
			[]string{"create suspended in b", "suspend and delete in a if stale, made again"}, notReleased, 0},
		"... of a Job that waits": {look(movedJob(onClusterLostIs("Wait")), at("a", stuck, asked(late)), at("b", nil)), Handover,
			nil, notReleased, 0},
		"an earlier Job's":                {look(placed, at("a", mirrorOf(placed, other, deleting), asked(soon))), NameTaken, nil, "", time.Second},
		"... for too long, with its name": {look(placed, at("a", mirrorOf(placed, other, deleting), asked(late))), NameTaken, []string{"move from a"}, notReleased, 30 * time.Second},
		"... elsewhere":                   {look(hubJob(placedOn("b")), at("b", nil), at("a", mirrorOf(placed, other, deleting))), MirrorMissing, []string{"create in b"}, "Mirrored", late},
		"... and the Job is deleted":      {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed, other, deleting))), Deleting, []string{"remove finalizer"}, "", late},
		"made up elsewhere, and kept":     {look(hubJob(placedOn("b"), running(0)), at("b", mirrorOf(placed, running(0))), at("a", stuck, asked(late))), Mirrored, nil, notReleased, 0},
		"... while the Job is deleted":    {look(hubJob(placedOn("b"), deleting), at("b", nil), at("a", stuck)), Deleting, []string{"confirm that b is left", "remove finalizer"}, "", late},
		"... before the Job is placed":    {look(hubJob(), at("a", stuck)), Unplaced, []string{"place"}, "", late},
	} {
		t.Run(name, func(t *testing.T) {
			plan := checkDecision(t, row.given, row.want, row.then)
			checkReports(t, plan, row.reports)
			if row.after != 0 && plan.After != row.after {
				t.Errorf("after %s, want %s", plan.After, row.after)
			}
		})
	}
}

// What a worker makes up again and again is removed less and less often.
func TestCleanupsBackOff(t *testing.T) {
	tried := func(n int) *Snapshot {
		return look(hubJob(placedOn("a"), complete), at("a", mirrorOf(hubJob(), complete)),
			at("b", mirrorOf(hubJob()), func(w *Worker) { w.Cleanups = Attempts{Count: n, Last: noon} }))
	}
	for n, want := range map[int]time.Duration{0: 0, 1: 0, 2: time.Second, 5: 8 * time.Second, 50: time.Minute} {
		plan := Decide(tried(n))
		if removes := len(plan.Cleanup) > 0; removes != (want == 0) || want > 0 && plan.After != want {
			t.Errorf("after %d attempts: cleanup %v, after %s, want %s", n, plan.Cleanup, plan.After, want)
		}
	}
}
