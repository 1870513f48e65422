package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// situation is one row of the tables of dispatch: how a Job comes into it, and what the manager
// writes then.
type situation struct {
	name  dispatch.Situation
	given func(*world)
	then  []string
}

// runs has the Job run in worker a, with one of its four Pods succeeded.
func runs(w *world) {
	w.submits(aJob("train"))
	w.step(time.Second)
	w.worker("a").completes(1)
	w.step(time.Second)
}

// isQueued has the Job be suspended with quota reserved.
func isQueued(w *world) {
	w.admits(dispatch.Admission{Checked: true, QuotaReserved: true, ReservedAt: noon})
	w.submits(aJob("train", suspended(true)))
}

// movesToB and continuesInB are what the manager writes to move a Job with progress.
var (
	movesToB     = []string{"hub: patch cluster=b moved-at=12:00:02 moved-from=a moved-with=...", "event: Moved"}
	continuesInB = []string{
		"b: create suspended", "event: Mirrored", "b: status succeeded=1", "b: patch suspend=false",
	}
	continuesInBAfterLoss = []string{
		"b: create suspended", "event: Mirrored", "b: status succeeded=1", "hub: status -active -ready -terminating", "b: patch suspend=false",
	}
)

func situations() []situation {
	return slices.Concat(jobSituations, workerSituations, shardSituations)
}

var jobSituations = []situation{
	{dispatch.Absent, func(w *world) {
		runs(w)
		w.edits("removes the finalizer", func(job *batchv1.Job) { job.Finalizers = nil })
		w.deletes(metav1.DeletePropagationBackground)
	}, []string{"a: delete"}},
	{dispatch.Deleting, func(w *world) {
		runs(w)
		w.deletes(metav1.DeletePropagationOrphan)
	}, []string{"a: delete Orphan", "hub: patch finalizers=[]"}},
	{dispatch.Finished, func(w *world) {
		runs(w)
		w.worker("a").completes(3)
		w.step(time.Second)
		w.worker("a").isRemoved(v1alpha1.RemovalWait)
	}, []string{"a: delete"}},
	{dispatch.PlacementMissing, func(w *world) {
		runs(w)
		w.edits("removes the placement", kept(hubstate.Cluster, ""))
	}, []string{"hub: patch cluster=a", "event: Placed"}},
	{dispatch.Handover, func(w *world) {
		runs(w)
		w.worker("a").idle = true // its Pods take their time to end
		w.worker("a").drains(true)
		w.run()
		w.worker("a").idle = false
		w.worker("a").work()
	}, append([]string{"hub: status -active ready=0", "a: delete"}, continuesInB...)},
	{dispatch.NotDispatched, func(w *world) {
		w.labels(nil)
		w.submits(aJob("train", kept(hubstate.Cluster, "a")))
		w.clock.Step(time.Minute)
	}, []string{"event: NamespaceNotDispatched"}},
	{dispatch.Queued, isQueued, []string{
		"hub: status conditions=[Suspended] ready=0 terminating=0", "event: Suspended",
		"hub: patch cluster=a finalizers=[jobferry.dev/mirror]", "event: Placed",
	}},
	{dispatch.Suspended, func(w *world) { w.submits(aJob("train", suspended(true))) },
		[]string{"hub: status conditions=[Suspended] ready=0 terminating=0", "event: Suspended"}},
	{dispatch.Unplaced, func(w *world) { w.submits(aJob("train")) }, []string{
		"hub: patch cluster=a finalizers=[jobferry.dev/mirror]", "event: Placed",
		"a: create", "hub: status active=2 ready=2 startTime=12:00:00 terminating=0",
	}},
}

var workerSituations = []situation{
	{dispatch.WorkerUnregistered, func(w *world) {
		runs(w)
		w.worker("a").isGone()
	}, slices.Concat(movesToB, continuesInBAfterLoss)},
	{dispatch.WorkerBeingRemoved, func(w *world) {
		runs(w)
		w.worker("a").isRemoved(v1alpha1.RemovalMove)
	}, slices.Concat(movesToB, []string{"a: patch suspend=true", "event: Moving", "hub: status -active ready=0", "a: delete"}, continuesInB)},
	{dispatch.WorkerUnwanted, func(w *world) {
		runs(w)
		w.worker("a").losesInSight()
		w.worker("a").drains(true)
	}, slices.Concat(movesToB, continuesInBAfterLoss)},
	{dispatch.QueuedAtWorker, func(w *world) {
		isQueued(w)
		w.run()
		w.admits(dispatch.Admission{Checked: true, QuotaReserved: true, Workers: []string{"b"}, ReservedAt: noon})
	}, []string{"hub: patch cluster=b moved-at=12:00:00 moved-from=a moved-with=...", "event: Moved"}},
	{dispatch.SuspendedAtWorker, func(w *world) {
		w.submits(aJob("train", suspended(true), kept(hubstate.Cluster, "a")))
	}, []string{"hub: status finalizers=[jobferry.dev/mirror] conditions=[Suspended] ready=0 terminating=0", "event: Suspended"}},
	{dispatch.StatusUnreflected, func(w *world) {
		runs(w)
		w.worker("a").completes(1)
		w.run()
		w.worker("a").completes(1)
		w.run() // it waits for the next change
		w.worker("a").disconnects()
	}, []string{"hub: status active=1 ready=1 succeeded=3", "event: OutOfTouch"}},
	{dispatch.QuotaReclaimed, func(w *world) {
		w.admits(dispatch.Admission{Checked: true})
		runs(w)
		w.worker("a").isLost()
		w.suspends()
	}, []string{"hub: status -active conditions=[Suspended] ready=0 -startTime", "event: Suspended"}},
	{dispatch.WorkerLost, func(w *world) {
		runs(w)
		w.worker("a").disconnects()
		w.worker("a").since = w.clock.Now().Add(-lostAfter)
	}, slices.Concat(movesToB, continuesInBAfterLoss)},
	{dispatch.WorkerUnreachable, func(w *world) {
		runs(w)
		w.worker("a").disconnects()
	}, []string{"event: OutOfTouch"}},
	{dispatch.MirrorTakenBack, func(w *world) {
		runs(w)
		w.worker("a").api.strips = true
		w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Annotations["example.org/touched"] = "true" })
		w.worker("a").completes(2)
		w.step(9 * time.Second) // it's suspended, and the hub is to know what it did before it's deleted
		w.edits("labels the Job", func(job *batchv1.Job) { job.Labels = map[string]string{"team": "a"} })
	}, []string{
		"hub: status -active ready=0 succeeded=3", "a: delete",
	}},
	{dispatch.WorkerRefuses, func(w *world) {
		w.submits(aJob("train"))
		w.worker("b").disconnects()
		w.worker("a").has(aJob("train"))
		w.run()
		w.worker("b").isBack()
	}, []string{
		"hub: patch cluster=b moved-at=12:00:00 moved-from=a moved-with=...", "event: Moved",
		"b: create", "event: Mirrored", "hub: status active=2 ready=2 startTime=12:00:00 terminating=0",
	}},
	{dispatch.NameTaken, func(w *world) {
		runs(w)
		w.edits("removes the finalizer", func(job *batchv1.Job) { job.Finalizers = nil })
		w.deletes(metav1.DeletePropagationBackground)
		w.submits(aJob("train", kept(hubstate.Cluster, "a")))
	}, []string{
		"a: delete", "hub: patch finalizers=[jobferry.dev/mirror]", "a: create", "event: Mirrored",
		"hub: status active=2 ready=2 startTime=12:00:02 terminating=0",
	}},
	{dispatch.GroupElsewhere, func(w *world) {
		w.submits(aJob("train", inGroup("pair")))
		w.submits(aJob("wait", inGroup("pair")))
		w.step(time.Second)
		w.worker("a").drains(true)
		_, _ = w.runUntil(func() bool { return slices.Contains(w.situations(), dispatch.GroupElsewhere) })
	}, []string{"b: create", "event: Mirrored", "b: create", "event: Mirrored"}},
	{dispatch.MirrorMissing, func(w *world) {
		runs(w)
		w.worker("a").losesInSight()
	}, []string{
		"a: create suspended", "event: Mirrored", "event: MirrorRecreated", "a: status succeeded=1", "hub: status -active -ready -terminating", "a: patch suspend=false",
	}},
	{dispatch.MirrorMissed, func(w *world) {
		runs(w)
		w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Labels = nil })
	}, []string{"a: patch hub-uid=hub-1 origin=hub-1", "event: Drift"}},
	{dispatch.MirrorDeleted, func(w *world) {
		runs(w)
		w.worker("a").idle = true
		w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = []string{metav1.FinalizerDeleteDependents} })
		w.worker("a").loses()
	}, []string{"event: MirrorRecreated"}},
	{dispatch.Mirrored, func(w *world) {
		runs(w)
		w.edits("wants one Pod at a time", func(job *batchv1.Job) { job.Spec.Parallelism = &one })
	}, []string{"a: patch parallelism=1", "hub: status active=1 ready=1"}},
}

var one int32 = 1

// Each situation of dispatch's tables is reached from the objects, and followed by its writes.
func TestEachSituation(t *testing.T) {
	for _, row := range situations() {
		t.Run(string(row.name), func(t *testing.T) {
			w := newWorld(t)
			row.given(w)
			w.deliver()
			if got := w.situations(); !slices.Contains(got, row.name) {
				w.fail("the situations are %s, want %s", got, row.name)
			}
			line := len(w.log)
			w.run()
			if got := w.since(line); !slices.Equal(got, row.then) {
				w.fail("then:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(row.then, "\n"))
			}
		})
	}
}

// situations are those that the manager would find the Job and its shards in now.
func (w *world) situations() []dispatch.Situation {
	plan := dispatch.Decide(w.look(w.Context(), jobKey).Snapshot)
	all := []dispatch.Situation{plan.Situation}
	for _, part := range plan.Parts {
		all = append(all, part.Situation)
	}
	return all
}

func TestNoSituationIsLeftOut(t *testing.T) {
	for _, name := range situationNames(t) {
		if !slices.ContainsFunc(situations(), func(s situation) bool { return s.name == name }) {
			t.Errorf("no story leads to the situation %s", name)
		}
	}
}

// situationNames reads the constants of package dispatch.
func situationNames(t *testing.T) []dispatch.Situation {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../dispatch/decide.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []dispatch.Situation
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Situation" {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, dispatch.Situation(name))
		return true
	})
	if len(names) == 0 {
		t.Fatal("no situations were found")
	}
	return names
}
