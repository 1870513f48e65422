package checker

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A Job that runs through on one worker, and one that is moved off a lost one, violate nothing.
func TestNothingIsWrong(t *testing.T) {
	w := newWorld(t)
	w.place("fenced")
	p := w.run("fenced", 0)
	w.succeed(p)
	w.hub(completed("0", 1))
	heal := w.fault("fenced", schedule.BlackHoleLink)
	q := w.run("fenced", 1)
	w.pass(20 * time.Second)
	w.stop(q) // by the fence
	w.pass(20 * time.Second)
	w.place("open")
	for index := range 3 {
		w.succeed(w.run("open", index+1))
	}
	heal()
	w.hub(complete)
	w.checker.CheckEnds(w.at)
	w.expect()
	if f := w.checker.Figures(); f.Moves != 1 || f.Moved != 1 || f.Excused != 0 || f.Reruns != 0 || len(w.questions) != 0 {
		t.Errorf("figures %+v, questions %v", f, w.questions)
	}
}

func TestStatusGoesBack(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return ptr.To(metav1.Unix(seconds, 0)) }
	for name, row := range map[string]struct {
		before, after func(*batchv1.JobStatus)
		want          string
	}{
		"succeeded":        {completed("0-1", 2), completed("0-1", 1), "succeeded falls"},
		"completedIndexes": {completed("0-1", 2), completed("0,2", 2), "completedIndexes shrink"},
		"failed":           {func(s *batchv1.JobStatus) { s.Failed = 2 }, func(s *batchv1.JobStatus) { s.Failed = 1 }, "failed falls"},
		"failedIndexes": {func(s *batchv1.JobStatus) { s.FailedIndexes = ptr.To("1") },
			func(s *batchv1.JobStatus) { s.FailedIndexes = nil }, "failedIndexes shrink"},
		"startTime": {func(s *batchv1.JobStatus) { s.StartTime = at(10) },
			func(s *batchv1.JobStatus) { s.StartTime = at(20) }, "startTime changes"},
		"completionTime":  {complete, func(s *batchv1.JobStatus) { s.CompletionTime = at(2000) }, "completionTime changes"},
		"condition":       {complete, func(s *batchv1.JobStatus) { s.Conditions, s.CompletionTime = nil, nil }, "a final condition is taken back"},
		"after the end":   {complete, func(s *batchv1.JobStatus) { s.Failed = 1 }, "a finished Job's status changes"},
		"Pods at the end": {func(*batchv1.JobStatus) {}, func(s *batchv1.JobStatus) { complete(s); s.Active = 1 }, "a finished Job has Pods"},
		"ready":           {func(*batchv1.JobStatus) {}, func(s *batchv1.JobStatus) { s.Ready = ptr.To[int32](1) }, "more Pods are ready than active"},
		"no time":         {func(*batchv1.JobStatus) {}, func(s *batchv1.JobStatus) { complete(s); s.CompletionTime = nil }, "Complete without completionTime"},
		"order": {func(*batchv1.JobStatus) {}, func(s *batchv1.JobStatus) { complete(s); s.StartTime = at(3000) },
			"completionTime before startTime"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hub(row.before)
			w.expect()
			w.hub(row.after)
			violations := w.checker.Violations()
			if len(violations) == 0 || violations[0].Rule != Back {
				t.Fatalf("violations %v", violations)
			}
			var texts []string
			for _, v := range violations {
				texts = append(texts, v.Text)
			}
			if !strings.Contains(strings.Join(texts, "\n"), row.want) {
				t.Errorf("violations %q, want %q", texts, row.want)
			}
		})
	}
}

// Pods in two workers at once are excused by what hit the worker that the Job was moved from, and
// by nothing else.
func TestTwice(t *testing.T) {
	for name, row := range map[string]struct {
		from, to string
		fault    schedule.Kind
		target   string
		want     []Rule
	}{
		"no fault":                          {from: "fenced", to: "open", want: []Rule{Twice}},
		"the fence should have held":        {from: "fenced", to: "open", fault: schedule.BlackHoleLink, target: "fenced", want: []Rule{Twice}},
		"its API server was down":           {from: "fenced", to: "open", fault: schedule.KillAPIServer, target: "fenced"},
		"its controller hung":               {from: "fenced", to: "open", fault: schedule.FreezeJobController, target: "fenced"},
		"its clock is no excuse":            {from: "fenced", to: "open", fault: schedule.SetClock, target: "fenced", want: []Rule{Twice}},
		"there is no fence":                 {from: "open", to: "fenced", fault: schedule.BlackHoleLink, target: "open"},
		"no fence, but it was in touch":     {from: "open", to: "fenced", fault: schedule.SetClock, target: "open", want: []Rule{Twice}},
		"another worker's fault":            {from: "fenced", to: "open", fault: schedule.KillAPIServer, target: "open", want: []Rule{Twice}},
		"a manager's fault is no excuse":    {from: "open", to: "fenced", fault: schedule.KillLeader, target: schedule.Hub, want: []Rule{Twice}},
		"planned moves need no lost worker": {from: "open", to: "fenced", fault: schedule.Drain, target: "open", want: []Rule{Twice}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place(row.from)
			w.run(row.from, 0)
			if row.fault != "" {
				w.fault(row.target, row.fault)
			}
			w.pass(40 * time.Second)
			w.place(row.to)
			w.run(row.to, 0)
			if len(w.questions) != 1 || w.questions[0].Pods[0].Where != row.from {
				t.Fatalf("questions %v", w.questions)
			}
			w.allRun()
			w.expect(row.want...)
			if excused := w.checker.Figures().Excused; (excused == 1) != (len(row.want) == 0) {
				t.Errorf("%d excused", excused)
			}
		})
	}
}

// Without a move there's no excuse; and an answer other than yes is no violation.
func TestTwiceWithoutAMove(t *testing.T) {
	w := newWorld(t)
	w.place("fenced")
	w.fault("fenced", schedule.KillAPIServer)
	w.run("fenced", 0)
	w.run("open", 1)
	w.checker.Answer(w.at, w.questions[0], SomeEnded)
	w.checker.Answer(w.at, w.questions[0], NoAnswer)
	w.expect()
	w.allRun()
	w.expect(Twice)
}

// A Job controller that was frozen, or that hasn't heard of the deletion yet, makes Pods for a Job
// that is being deleted, beside those of the next Job of that name.
func TestTwiceForADeletedJob(t *testing.T) {
	for name, row := range map[string]struct {
		fault     schedule.Kind
		made      time.Duration // after the deletion
		successor types.UID
		want      []Rule
	}{
		"frozen":                              {schedule.FreezeJobController, 3 * time.Second, "hub-job-2", nil},
		"not frozen":                          {schedule.SetClock, 3 * time.Second, "hub-job-2", []Rule{Twice}},
		"not frozen, a moment later":          {schedule.SetClock, 200 * time.Millisecond, "hub-job-2", nil},
		"made before":                         {schedule.FreezeJobController, -time.Second, "hub-job-2", []Rule{Twice}},
		"long after it had been frozen":       {schedule.FreezeJobController, time.Minute, "hub-job-2", []Rule{Twice}},
		"the same Job, which continues there": {schedule.FreezeJobController, 200 * time.Millisecond, "hub-job", []Rule{Twice}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pass(time.Minute)
			w.fault("open", row.fault)()
			if row.made < 0 {
				w.run("open", 0)
			}
			w.seeMirror("open", "hub-job", &metav1.Time{Time: time.Unix(5, 0)})
			w.pass(row.made)
			if row.made > 0 {
				w.run("open", 0)
			}
			w.seeMirror("fenced", row.successor, nil)
			w.run("fenced", 0)
			w.allRun()
			w.expect(row.want...)
		})
	}
}

// A Job is deleted, and created again. In the background, the Pods of the first end beside those of
// the second; in the foreground, they're gone before.
func TestTwiceOfAReplacedJob(t *testing.T) {
	for name, row := range map[string]struct {
		act       story.Act
		successor types.UID
		want      []Rule
	}{
		"in the background":  {story.Act{Deed: story.Replace}, "hub-job-2", nil},
		"in the foreground":  {story.Act{Deed: story.Replace, Value: 1}, "hub-job-2", []Rule{Twice}},
		"only deleted":       {story.Act{Deed: story.Delete}, "hub-job-2", []Rule{Twice}},
		"the same Job moves": {story.Act{Deed: story.Replace}, "hub-job", []Rule{Twice}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *story.Story) { s.Acts = []story.Act{row.act} })
			w.pass(time.Minute)
			w.seeMirror("open", "hub-job", nil)
			w.run("open", 0)
			w.seeMirror("fenced", row.successor, nil)
			w.run("fenced", 0)
			w.allRun()
			w.expect(row.want...)
			if excused := w.checker.Figures().Excused; excused != 0 {
				t.Errorf("%d Jobs ran in two places", excused)
			}
		})
	}
}

func TestAgain(t *testing.T) {
	t.Run("in one worker", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		w.succeed(w.run("fenced", 2))
		w.succeed(w.run("fenced", 2))
		w.expect(Again)
	})
	t.Run("stopped, it doesn't count", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		p := w.run("fenced", 2)
		p.Pod.DeletionTimestamp = ptr.To(metav1.Unix(5, 0))
		w.see(p)
		w.succeed(p)
		w.succeed(w.run("fenced", 2))
		w.expect()
		w.hub(completed("2", 1))
	})
	t.Run("given up, it doesn't count", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		p := w.run("fenced", 2)
		p.Pod.Finalizers = nil
		w.see(p)
		w.succeed(p)
		w.succeed(w.run("fenced", 2))
		w.expect()
		w.hub(completed("2", 1))
	})
}

// Kubernetes' own Job controller may create two Pods for an index; ours may not, and neither may
// run one again.
func TestTwins(t *testing.T) {
	for worker, want := range map[string][]Rule{"open": nil, "fenced": {Again}} {
		w := newWorld(t)
		w.place(worker)
		first, second := w.run(worker, 2), w.run(worker, 2)
		w.succeed(second)
		w.succeed(first)
		w.expect(want...)
		if n := w.checker.Figures().Twins; (n == 1) != (want == nil) {
			t.Errorf("%d twins in %s", n, worker)
		}
	}
	w := newWorld(t)
	w.place("open")
	w.succeed(w.run("open", 2))
	w.succeed(w.run("open", 2))
	w.expect(Again)
}

// What completes again after a move is excused by the loss of the worker, and by nothing else.
func TestAgainAfterAMove(t *testing.T) {
	t.Run("the worker was lost before it could tell", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		w.fault("fenced", schedule.BreakLink)
		w.succeed(w.run("fenced", 2))
		w.pass(40 * time.Second)
		w.place("open")
		w.succeed(w.run("open", 2))
		w.expect()
		if n := w.checker.Figures().Reruns; n != 1 {
			t.Errorf("%d reruns", n)
		}
	})
	t.Run("and the Job came back to it", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		heal := w.fault("fenced", schedule.BreakLink)
		w.succeed(w.run("fenced", 2))
		w.pass(40 * time.Second)
		w.place("open")
		heal()
		w.place("fenced")
		w.succeed(w.run("fenced", 2))
		w.expect()
	})
	t.Run("though the hub knew when the Job was moved", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		w.succeed(w.run("fenced", 2))
		w.hub(completed("2", 1))
		w.fault("fenced", schedule.BreakLink)
		w.pass(40 * time.Second)
		w.place("open")
		p := w.run("open", 2)
		w.allRun()
		w.succeed(p)
		w.expect(Again, Again)
	})
	t.Run("a planned move", func(t *testing.T) {
		w := newWorld(t)
		w.place("fenced")
		w.succeed(w.run("fenced", 2))
		w.place("open")
		w.succeed(w.run("open", 2))
		w.expect(Again)
	})
	t.Run("as it was asked to", func(t *testing.T) {
		w := newWorld(t, func(s *story.Story) {
			s.Job.Annotations = map[string]string{v1alpha1.AnnotationOnClusterLost: "Restart"}
		})
		w.place("fenced")
		w.succeed(w.run("fenced", 2))
		w.hub(completed("2", 1))
		w.place("open")
		w.succeed(w.run("open", 2))
		w.expect()
	})
}

func TestAgainAfterASuspension(t *testing.T) {
	for name, row := range map[string]struct {
		suspended bool
		overslept bool // by its Job controller, when it succeeds
		resumed   bool // before it's gone
		// unsuspended: it isn't suspended meanwhile.
		unsuspended bool
		counted     string
		want        []Rule
	}{
		"deleted for a suspension as it ended, it doesn't count":   {suspended: true},
		"but it does if it was counted":                            {suspended: true, counted: "2", want: []Rule{Again}},
		"or if nobody suspended it":                                {want: []Rule{Again}},
		"a Job controller that stood still deletes it later":       {overslept: true},
		"and its user has resumed it by then":                      {overslept: true, resumed: true},
		"nobody suspended it while its Job controller stood still": {overslept: true, unsuspended: true, want: []Rule{Again}},
		"but it counts if it was counted":                          {overslept: true, counted: "2", want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("fenced")
			p := w.run("fenced", 2)
			w.seeMirror("fenced", "hub-job", nil, func(m *batchv1.Job) { m.Spec.Suspend = ptr.To(row.suspended) })
			if row.overslept {
				w.fault("fenced", schedule.FreezeJobController)
			}
			w.succeed(p)
			w.seeMirror("fenced", "hub-job", nil, func(m *batchv1.Job) {
				m.Spec.Suspend, m.Status.CompletedIndexes = ptr.To(row.suspended || row.overslept && !row.unsuspended), row.counted
			})
			if row.resumed {
				w.seeMirror("fenced", "hub-job", nil)
			}
			p.Pod.Status.Phase = corev1.PodSucceeded
			w.stop(p)
			w.seeMirror("fenced", "hub-job", nil)
			w.succeed(w.run("fenced", 2))
			w.expect(row.want...)
		})
	}
}

func TestIsolated(t *testing.T) {
	w := newWorld(t)
	w.place("fenced")
	heal := w.fault(schedule.Hub, schedule.IsolateHub)
	w.pass(40 * time.Second)
	w.place("open")
	w.expect(Isolated)
	heal()
	w.pass(time.Second)
	w.place("fenced")
	w.expect(Isolated)
}

// A move that somebody asked for is no judgement of a worker.
func TestMovedOnRequestWhileIsolated(t *testing.T) {
	w := newWorld(t)
	w.place("fenced")
	w.fault(schedule.Hub, schedule.IsolateHub)
	w.pass(6 * time.Second)
	w.selector = "region=other"
	w.place("open")
	w.expect()
	w.fault("open", schedule.Drain)
	w.pass(time.Second)
	w.place("fenced")
	w.expect()
}

func TestVanished(t *testing.T) {
	w := newWorld(t)
	w.hub()
	w.hubGone()
	w.expect(Vanished)
	w = newWorld(t)
	w.hub()
	w.checker.Acted(0, "job", story.Delete)
	w.hubGone()
	w.expect()
}

func TestEnds(t *testing.T) {
	w := newWorld(t)
	w.hub()
	if pending := w.checker.Pending(); len(pending) != 1 {
		t.Errorf("pending %v", pending)
	}
	w.checker.CheckEnds(w.at)
	w.expect(Lost)

	w = newWorld(t, func(s *story.Story) { s.End = story.End{Condition: batchv1.JobFailed} })
	w.runAll("open")
	w.hub(complete)
	w.checker.CheckEnds(w.at)
	w.expect(Ends)

	w = newWorld(t)
	w.place("open")
	w.hub(complete)
	w.place("fenced")
	w.expect(Placed)
}

// What the hub counts must have happened, and no more than that.
func TestCounts(t *testing.T) {
	t.Run("more than succeeded", func(t *testing.T) {
		w := newWorld(t)
		w.place("open")
		w.succeed(w.run("open", 0))
		w.hub(complete)
		w.checker.CheckEnds(w.at)
		w.expect(Ends)
	})
	tooMany := func(t *testing.T) *world {
		w := newWorld(t)
		w.runAll("open")
		w.fault("open", schedule.BreakLink)
		w.succeed(w.run("open", -1))
		return w
	}
	t.Run("fewer", func(t *testing.T) {
		w := tooMany(t)
		w.hub(complete)
		w.checker.CheckEnds(w.at)
		w.expect(Again)
	})
	for name, scaled := range map[string]bool{"a surplus Pod was deleted as it succeeded": true, "a Pod that counts was deleted": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.runAll("open")
			w.seeMirror("open", "hub-job", nil)
			if scaled {
				w.checker.Acted(w.at, "job", story.Scale)
			}
			surplus := w.run("open", -1)
			w.succeed(surplus)
			w.stop(surplus)
			w.hub(complete)
			w.checker.CheckEnds(w.at)
			if scaled {
				w.expect()
			} else {
				w.expect(Again)
			}
		})
	}
	t.Run("fewer, as the worker was lost", func(t *testing.T) {
		w := tooMany(t)
		w.pass(40 * time.Second)
		w.place("fenced")
		w.hub(complete)
		w.checker.CheckEnds(w.at)
		w.expect()
		if n := w.checker.Figures().Reruns; n != 1 {
			t.Errorf("%d reruns", n)
		}
	})
}
