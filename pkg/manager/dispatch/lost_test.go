package dispatch

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// lost is a worker that has been given up, since a quarter of an hour.
func lost(w *Worker) {
	unreachable(w)
	w.Loss = Loss{Lost: true, Since: noon.Add(-15 * time.Minute)}
}

func onClusterLostIs(policy string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationOnClusterLost] = policy }
}

// movedFrom is what a move from a worker leaves, made a minute ago with the progress that the Job
// has now.
func movedFrom(worker string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		move := &mirror.Move{From: worker, At: noon.Add(-time.Minute), RanUntil: noon.Add(-time.Minute)}
		hubstate.Set(j, mirror.PlacementChanges(j, hubstate.Get(j, hubstate.Cluster), move))
	}
}

// atRest is the status of a suspended mirror whose Pods have ended, with n successes.
func atRest(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		suspendedJob(j)
		mirrortest.Shows(j, batchv1.JobStatus{
			StartTime: ptr.To(metav1.NewTime(noon.Add(-30 * time.Minute))), Succeeded: n,
			Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}},
		})
	}
}

// stopping is the same while its Pods are ending.
func stopping(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { atRest(n)(j); j.Status.Terminating = ptr.To[int32](1) }
}

func fenced(j *batchv1.Job) {
	metav1.SetMetaDataAnnotation(&j.ObjectMeta, v1alpha1.AnnotationFenced, "2026-03-01T11:50:00Z")
}

func unwanted(w *Worker) { w.Unwanted = "worker a is drained" }

func shows(m func(*batchv1.Job)) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		shown := j.DeepCopy()
		m(shown)
		shown.Status.Conditions = nil
		mirrortest.Shows(j, shown.Status)
	}
}

// lostTest is a Job whose worker is out of touch, unwanted, or was so.
type lostTest struct {
	given   *Snapshot
	want    Situation
	then    []string
	reports string
}

func checkLost(t *testing.T, rows map[string]lostTest) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			plan := checkDecision(t, row.given, row.want, row.then)
			checkReports(t, plan, row.reports)
		})
	}
}

// movedJob is one that was moved from a to b.
func movedJob(changes ...func(*batchv1.Job)) *batchv1.Job {
	return hubJob(append([]func(*batchv1.Job){placedOn("b"), succeeded(1), movedFrom("a")}, changes...)...)
}

// lossPending says that the worker is lost in a quarter of an hour.
func lossPending(w *Worker) {
	unreachable(w)
	w.Loss = Loss{Since: noon, At: noon.Add(15 * time.Minute)}
}

func TestLost(t *testing.T) {
	other := func(m *batchv1.Job) { m.Annotations[v1alpha1.AnnotationHubUID] = "other" }
	placed := hubJob(placedOn("a"), running(1))
	isolated := func(w *Worker) {
		unreachable(w)
		w.Loss = Loss{Since: noon.Add(-time.Hour), At: noon.Add(-time.Minute), Isolated: true}
	}
	checkLost(t, map[string]lostTest{
		"out of touch, not yet lost":    {look(placed, at("a", mirrorOf(placed), lossPending)), WorkerUnreachable, nil, "continues elsewhere from 2026-03-01T12:15:00Z"},
		"no worker is Ready":            {look(placed, at("a", mirrorOf(placed), isolated)), WorkerUnreachable, nil, "nothing is moved"},
		"lost":                          {look(placed, at("a", mirrorOf(placed), lost)), WorkerLost, []string{"move from a"}, ""},
		"out of touch, with news":       {look(placed, at("a", mirrorOf(placed, running(2)), lossPending)), StatusUnreflected, []string{"status"}, ""},
		"lost, with news":               {look(placed, at("a", mirrorOf(placed, running(2)), lost)), StatusUnreflected, []string{"status"}, ""},
		"lost, and had told of its end": {look(placed, at("a", mirrorOf(placed, ended), lost)), StatusUnreflected, []string{"status"}, ""},
		"lost, with Pods that ran":      {look(placed, at("a", mirrorOf(placed, runningMore(1)), lost)), WorkerLost, []string{"move from a"}, ""},
		"lost, with news that the hub rejects": {
			rejected(look(placed, at("a", mirrorOf(placed, running(2)), lost))), WorkerLost, []string{"move from a"}, "",
		},
		"lost, with an earlier Job's end": {
			look(placed, at("a", mirrorOf(hubJob(), other, ended), lost)), WorkerLost, []string{"move from a"}, "",
		},
		"lost before it was mirrored": {
			look(hubJob(placedOn("a")), at("a", nil, lost)), WorkerLost, []string{"move from a"}, "",
		},
		"lost, Restart":            {look(hubJob(placedOn("a"), onClusterLostIs("Restart")), at("a", nil, lost)), WorkerLost, []string{"move from a, from zero"}, ""},
		"lost, Wait":               {look(hubJob(placedOn("a"), onClusterLostIs("Wait")), at("a", nil, lost)), WorkerLost, nil, "Lost: worker a is lost: not Ready since 2026-03-01T11:45:00Z; the Job waits"},
		"lost, a word of its own":  {look(hubJob(placedOn("a"), onClusterLostIs("wait")), at("a", nil, lost)), WorkerLost, nil, `InvalidAnnotation: annotation jobferry.dev/on-cluster-lost: "wait"`},
		"lost, and deleted":        {look(hubJob(placedOn("a"), deleting), at("a", nil, lost)), Deleting, []string{"remove finalizer"}, ""},
		"lost, and finished":       {look(hubJob(placedOn("a"), complete), at("a", nil, lost)), Finished, nil, ""},
		"its queue takes it back":  {checked(look(placed, at("a", nil, lost))), WorkerLost, nil, "queue takes it back"},
		"moved from a lost worker": {look(movedJob(), at("a", mirrorOf(placed), lost), at("b", nil)), MirrorMissing, []string{"create suspended in b"}, "Created"},
		"moved, deleted: it doesn't wait for a lost worker": {
			look(movedJob(deleting), at("a", mirrorOf(placed), lost), at("b", nil)), Deleting, []string{"confirm that b is left", "remove finalizer"}, "",
		},
	})
}

func TestBackFromLoss(t *testing.T) {
	placed := hubJob(placedOn("a"), running(1))
	checkLost(t, map[string]lostTest{
		"it's back before the Job went on elsewhere": {
			look(movedJob(), at("a", mirrorOf(placed, running(2))), at("b", nil)), Handover, []string{"suspend in a"}, "",
		},
		"... and brings what it did": {
			look(movedJob(shows(stopping(1))), at("a", mirrorOf(placed, stopping(2))), at("b", nil)), Handover, []string{"status"}, "",
		},
		"... and is waited for": {
			look(movedJob(shows(stopping(2))), at("a", mirrorOf(placed, stopping(2))), at("b", nil)), Handover, nil, "Waiting for the Job's Pods in worker a",
		},
		"... and goes": {
			look(movedJob(shows(atRest(2))), at("a", mirrorOf(placed, atRest(2))), at("b", nil)), Handover, []string{"delete in a if stale"}, "",
		},
		"... or has ended": {look(movedJob(), at("a", mirrorOf(placed, ended)), at("b", nil)), Handover, []string{"restore to a"}, ""},
		"... or is about to": {
			look(movedJob(), at("a", mirrorOf(placed, announced)), at("b", nil)), Handover, nil, "",
		},
		"... or says so for too long": {
			look(movedJob(), at("a", mirrorOf(placed, announced), asked(time.Hour)), at("b", nil)), MirrorMissing,
			[]string{"create suspended in b", "suspend and delete in a if stale, made again"}, "NotReleased",
		},
		"... with a lie": {
			look(movedJob(shows(atRest(1))), at("a", mirrorOf(placed, atRest(0))), at("b", nil)), Handover, []string{"delete in a if stale"}, "StatusRejected",
		},
		"the new home is out of touch itself: it stops, and is kept": {
			look(movedJob(), at("a", mirrorOf(placed, running(2))), at("b", nil, unreachable)), Handover, []string{"suspend in a"}, "",
		},
		"it's back too late": {
			look(movedJob(), at("a", mirrorOf(placed, running(2))), at("b", mirrorOf(placed, running(1)))), Mirrored,
			[]string{"status", "suspend and delete in a if stale, made again"}, "",
		},
		"it's back when the Job has ended": {
			look(movedJob(complete), at("a", mirrorOf(placed, running(2))), at("b", nil)), Finished,
			[]string{"suspend and delete in a if stale, made again"}, "",
		},
		"it had ended there, too": {
			look(movedJob(), at("a", mirrorOf(placed, ended)), at("b", mirrorOf(placed, running(1)))), Mirrored,
			[]string{"status", "delete in a if stale, made again"}, "",
		},
	})
}

func TestDrainedOrFenced(t *testing.T) {
	placed := hubJob(placedOn("a"), running(1))
	checkLost(t, map[string]lostTest{
		"drained":                       {look(started(), at("a", mirrorOf(hubJob(), running(0)), unwanted)), Mirrored, []string{"move from a"}, ""},
		"drained before it's mirrored":  {look(hubJob(placedOn("a")), at("a", nil, unwanted)), WorkerUnwanted, []string{"move from a"}, ""},
		"drained while it's suspended":  {look(hubJob(placedOn("a"), suspendedJob), at("a", nil, unwanted)), WorkerUnwanted, []string{"status"}, "Suspended"},
		"drained while it says so":      {look(started(), at("a", mirrorOf(hubJob(), announced), unwanted, asked(time.Hour))), Mirrored, []string{"status"}, ""},
		"drained while it's ending":     {look(started(), at("a", mirrorOf(hubJob(), announced), unwanted)), Mirrored, []string{"status"}, ""},
		"removed while it's ending":     {look(started(), at("a", mirrorOf(hubJob(), announced), removing(v1alpha1.RemovalMove))), Mirrored, []string{"status"}, ""},
		"drained, but out of touch":     {look(placed, at("a", mirrorOf(placed), lossPending, unwanted)), WorkerUnreachable, nil, "continues elsewhere from"},
		"fenced at home":                {look(started(), at("a", mirrorOf(hubJob(), running(0), fenced))), Mirrored, []string{"unfence in a"}, "may continue"},
		"fenced, and ended before that": {look(started(), at("a", mirrorOf(hubJob(), ended, fenced))), Mirrored, []string{"status"}, ""},
		"fenced elsewhere":              {look(movedJob(), at("a", mirrorOf(placed, running(1), fenced)), at("b", mirrorOf(placed, running(1)))), Mirrored, []string{"status", "suspend and delete in a if stale, made again"}, ""},
	})
}

// runningMore is running with a Pod more.
func runningMore(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { running(n)(j); j.Status.Active, j.Status.Ready = 2, ptr.To[int32](2) }
}

func rejected(s *Snapshot) *Snapshot {
	s.Assigned.StatusRejected = true
	return s
}

func checked(s *Snapshot) *Snapshot {
	s.Admission.Checked = true
	return s
}

func TestAMovedJobsMirror(t *testing.T) {
	deadline := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](7200) }
	fresh := func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.FreshStart: "true"}) }
	hub := hubJob(deadline, placedOn("b"), succeeded(1), movedFrom("a"))
	created := func(hub *batchv1.Job) *batchv1.Job {
		return Decide(look(hub, at("b", nil))).Actions[0].(CreateMirror).Mirror
	}
	m := created(hub)
	// It started half an hour ago.
	if left := *m.Spec.ActiveDeadlineSeconds; left != 7200-1800 || !mirror.Suspended(m) {
		t.Errorf("%d s are left, want 5400; suspended %v", left, mirror.Suspended(m))
	}
	fresh(hub)
	if m := created(hub); !mirror.FreshStart(m) || mirror.Suspended(m) {
		t.Errorf("a fresh start: %v, suspended %v", m.Annotations, mirror.Suspended(m))
	}
}

// What a Job could do between its worker's loss and its move isn't known, and isn't taken off its
// deadline.
func TestALostJobRanUntilItsWorkerWasLost(t *testing.T) {
	plan := Decide(look(hubJob(placedOn("a"), running(1)), at("a", nil, lost)))
	if ran := plan.Actions[0].(Place).RanUntil; !ran.Equal(noon.Add(-15 * time.Minute)) {
		t.Errorf("ran until %s", ran)
	}
}

// Whoever waits for a worker looks again when it would be lost, and not before.
func TestAWorkerOutOfTouchIsLookedAtAgain(t *testing.T) {
	for name, waits := range map[string]func(away func(*Worker)) *Snapshot{
		"it runs there": func(away func(*Worker)) *Snapshot {
			return look(hubJob(placedOn("a"), onClusterLostIs("Resume")), at("a", nil, away))
		},
		"and stays": func(away func(*Worker)) *Snapshot {
			return look(hubJob(placedOn("a"), onClusterLostIs("Wait")), at("a", nil, away))
		},
		"it was moved from there, and the manager was restarted": func(away func(*Worker)) *Snapshot {
			return look(movedJob(), at("b", nil), at("a", nil, away))
		},
		"it's deleted, and has a copy there": func(away func(*Worker)) *Snapshot {
			return look(movedJob(deleting), at("b", nil), at("a", mirrorOf(hubJob()), away))
		},
	} {
		for at, want := range map[time.Duration]time.Duration{15 * time.Minute: 15 * time.Minute, -time.Minute: 0} {
			away := func(w *Worker) { unreachable(w); w.Loss = Loss{Since: noon, At: noon.Add(at)} }
			if plan := Decide(waits(away)); plan.After != want {
				t.Errorf("%s, to be lost in %s: after %s", name, at, plan.After)
			}
		}
	}
}

// Annotations of 256 KiB that nobody can follow are neither copied nor shown.
func TestLongAnnotationsAreCheap(t *testing.T) {
	for name, value := range map[string]string{"letters": "x", "white space": " ", "digits": "1", "quotes": `"`} {
		long := strings.Repeat(value, 256<<10)
		hub := hubJob(placedOn("a"), onClusterLostIs(long), func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationPodStartTimeout] = long })
		s := look(hub, at("a", nil, lost))
		var problem, invalid []Report
		cost := costtest.Of(func() {
			_, problem = onClusterLost(s)
			_, invalid = podStartTimeout(hub)
			s.isGivenUp(s.Assigned)
		})
		if cost > 64<<10 || len(problem[0].Message)+len(invalid[0].Message) > 800 {
			t.Errorf("%s: %d KiB, %.300q, %.300q", name, cost>>10, problem[0].Message, invalid[0].Message)
		}
	}
}
