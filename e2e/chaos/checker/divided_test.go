package checker

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
)

// The shards of a Job run at once, and an index that its worker has given back completes in
// another.
func TestNothingIsWrongWithADividedJob(t *testing.T) {
	w := newWorld(t, mayDivide)
	w.divide("fenced=0-1", "open=2-3")
	p, q := w.run("fenced", 0), w.run("open", 2)
	w.divide("fenced=0", "open=1-3")
	r := w.run("open", 1)
	for _, e := range []Event{p, q, r, w.run("open", 3)} {
		w.succeed(e)
	}
	w.hub(complete)
	w.checker.CheckEnds(w.at)
	w.expect()
	if f := w.checker.Figures(); f != (Figures{}) || len(w.questions) != 0 {
		t.Errorf("figures %+v, questions %v", f, w.questions)
	}
}

// One index in two workers at once is excused by what hit the worker that lost its shard, and by
// nothing else.
func TestTwiceOfOneIndex(t *testing.T) {
	all := []string{"fenced=0-1", "open=2-3"}
	for name, row := range map[string]struct {
		from, to     string
		index, other int
		fault        schedule.Kind // of the worker that it left
		after        []string
		want         []Rule
	}{
		"no fault":                {from: "fenced", to: "open", after: []string{"open=0-3"}, want: []Rule{Twice}},
		"the fence has to hold":   {from: "fenced", to: "open", fault: schedule.BlackHoleLink, after: []string{"open=0-3"}, want: []Rule{Twice}},
		"its API server was down": {from: "fenced", to: "open", fault: schedule.KillAPIServer, after: []string{"open=0-3"}},
		"there is no fence": {from: "open", to: "fenced", index: 2, other: 2, fault: schedule.BlackHoleLink,
			after: []string{"fenced=0-3"}},
		"given back while it ran": {from: "fenced", to: "open", fault: schedule.KillAPIServer, after: []string{"fenced=1", "open=0,2-3"},
			want: []Rule{Twice}},
		"it wasn't in the shard that was lost": {from: "open", to: "fenced", index: 1, other: 1, fault: schedule.BlackHoleLink,
			after: []string{"fenced=0-3"}, want: []Rule{Twice}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mayDivide)
			w.divide(all...)
			w.run(row.from, row.index)
			if row.fault != "" {
				w.fault(row.from, row.fault)
			}
			w.pass(40 * time.Second)
			w.divide(row.after...)
			w.run(row.to, row.other)
			if len(w.questions) != 1 || w.questions[0].Pods[0].Where != row.from {
				t.Fatalf("questions %v", w.questions)
			}
			w.allRun()
			w.expect(row.want...)
		})
	}
}

// Two hub Jobs of one name exclude each other, whatever their indexes.
func TestTwiceOfTwoDividedJobs(t *testing.T) {
	w := newWorld(t, mayDivide)
	w.divide("fenced=0-1", "open=2-3")
	w.run("fenced", 0)
	w.seeMirror("open", "hub-job-2", nil)
	w.run("open", 2)
	w.allRun()
	w.expect(Twice)
}

func TestAgainOfShards(t *testing.T) {
	t.Run("the worker was lost before it could tell", func(t *testing.T) {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=2-3")
		w.fault("fenced", schedule.BreakLink)
		w.succeed(w.run("fenced", 1))
		w.pass(40 * time.Second)
		w.divide("open=0-3")
		w.succeed(w.run("open", 1))
		w.expect()
		if f := w.checker.Figures(); f.Reruns != 1 || f.Moves != 1 || f.Moved != 1 {
			t.Errorf("figures %+v", f)
		}
	})
	t.Run("though it was given back", func(t *testing.T) {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=2-3")
		w.fault("fenced", schedule.BreakLink)
		w.succeed(w.run("fenced", 1))
		w.divide("fenced=0", "open=1-3")
		w.succeed(w.run("open", 1))
		w.expect(Again)
	})
	t.Run("though the hub knew when the worker was lost", func(t *testing.T) {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=2-3")
		w.succeed(w.run("fenced", 1))
		w.hub(completed("1", 1))
		w.fault("fenced", schedule.BreakLink)
		w.pass(40 * time.Second)
		w.divide("open=0-3")
		p := w.run("open", 1)
		w.allRun()
		w.succeed(p)
		w.expect(Again, Again)
	})
}

// A lost worker that nothing stops starts what has completed elsewhere meanwhile.
func TestAgainInALostWorker(t *testing.T) {
	for name, row := range map[string]struct {
		lost, other string
		after       string
		want        []Rule
	}{
		"without a fence":       {lost: "open", other: "fenced", after: "fenced=0-3"},
		"the fence has to hold": {lost: "fenced", other: "open", after: "open=0-3", want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mayDivide)
			w.divide(row.lost+"=0-1", row.other+"=2-3")
			w.fault(row.lost, schedule.BreakLink)
			w.pass(40 * time.Second)
			w.divide(row.after)
			w.succeed(w.run(row.other, 1))
			w.hub(completed("1", 1))
			w.run(row.lost, 1)
			w.allRun()
			w.expect(row.want...)
		})
	}
}

func TestIsolatedShards(t *testing.T) {
	for name, row := range map[string]struct {
		after []string
		want  []Rule
	}{
		"a shard is taken away":               {[]string{"open=2-3"}, []Rule{Isolated}},
		"its indexes are, too":                {[]string{"open=1-3"}, []Rule{Isolated}},
		"an index is":                         {[]string{"fenced=0", "open=1-3"}, []Rule{Isolated}},
		"all are":                             {nil, []Rule{Isolated, Isolated}},
		"one that is complete":                {[]string{"fenced=1", "open=2-3"}, nil},
		"what no shard had is assigned":       {[]string{"fenced=0-1,4", "open=2-3"}, nil},
		"another worker gets its first shard": {[]string{"fenced=0-1", "open=2-3", "third=4"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mayDivide)
			w.divide("fenced=0-1", "open=2-3")
			w.hub(completed("0", 1))
			heal := w.fault(schedule.Hub, schedule.IsolateHub)
			w.pass(6 * time.Second)
			w.parallelism = 6
			w.divide(row.after...)
			w.expect(row.want...)
			heal()
			w.pass(time.Second)
			w.divide("third=1-3")
			w.expect(row.want...)
		})
	}
}

func TestPlacedInShards(t *testing.T) {
	for name, row := range map[string]struct {
		after []string
		want  []Rule
	}{
		"a worker is added":   {[]string{"fenced=0-1", "open="}, []Rule{Placed}},
		"an index is added":   {[]string{"fenced=0-2"}, []Rule{Placed}},
		"a shard is taken":    {nil, nil},
		"the parts are equal": {[]string{"fenced=0-1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mayDivide)
			w.divide("fenced=0-1")
			w.hub(complete)
			w.divide(row.after...)
			w.expect(row.want...)
		})
	}
}

func TestDividedWrongly(t *testing.T) {
	t.Run("an index is in two shards", func(t *testing.T) {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=1-3")
		w.expect(Divided)
	})
	t.Run("too many Pods at once", func(t *testing.T) {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=2-3")
		w.expect()
		w.divide("fenced=0-1", "open=2", "third=3")
		w.expect(Divided)
		w.hub() // it doesn't become more
		w.expect(Divided)
	})
	t.Run("its user lowers parallelism", func(t *testing.T) {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=2-3")
		w.parallelism = 1
		w.hub()
		w.divide("fenced=0-1", "open=2-3")
		w.divide("fenced=0-1")
		w.expect()
		w.divide("fenced=0-1", "open=2-3")
		w.expect(Divided)
	})
}

// A Pod that is one too many as its user lowers parallelism may succeed as it is deleted.
func TestSurplusOfADividedJob(t *testing.T) {
	for name, row := range map[string]struct {
		scaled bool
		want   []Rule
	}{
		"its user has lowered parallelism": {scaled: true},
		"nobody has":                       {want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mayDivide)
			w.divide("fenced=0-1", "open=2-3")
			if row.scaled {
				w.checker.Acted(w.at, "job", story.Scale)
			}
			p := w.run("open", 2)
			w.succeed(p)
			p.Pod.Status.Phase = "Succeeded"
			w.stop(p)
			w.seeMirror("open", "hub-job", nil, func(m *batchv1.Job) { m.Status.Active = 1 })
			w.succeed(w.run("open", 2))
			w.expect(row.want...)
		})
	}
}

// A fault of any of its workers disturbs a Job.
func TestADividedJobIsDisturbed(t *testing.T) {
	for worker, want := range map[string]bool{"fenced": true, "open": true, "third": false} {
		w := newWorld(t, mayDivide)
		w.divide("fenced=0-1", "open=2-3")
		w.fault(worker, schedule.BreakLink)
		if got := w.checker.records["job"].circumstances().Disturbed; got != want {
			t.Errorf("%s: %t", worker, got)
		}
	}
}
