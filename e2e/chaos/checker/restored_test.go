package checker

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
)

// What a restore of a worker's etcd undid may be done again there if the hub didn't know of it, or
// if it's begun before the manager has noticed; and nothing else.
func TestAfterARestore(t *testing.T) {
	for name, row := range map[string]struct {
		kind  schedule.Kind
		where string
		late  time.Duration
		knows bool
		want  []Rule
	}{
		"the hub didn't know":       {kind: schedule.RestoreWorker, where: "open", late: time.Minute},
		"it's begun at once":        {kind: schedule.RestoreWorker, where: "open", knows: true, late: time.Second},
		"it's begun later":          {kind: schedule.RestoreWorker, where: "open", knows: true, late: time.Minute, want: []Rule{Again}},
		"another worker's restore":  {kind: schedule.RestoreWorker, where: "fenced", late: time.Second, want: []Rule{Again}},
		"its etcd was killed alone": {kind: schedule.KillEtcd, where: "open", late: time.Second, want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			restore := w.fault(row.where, row.kind)
			w.pass(time.Second)
			w.succeed(w.run("open", 2))
			if row.knows {
				w.hub(completed("2", 1))
			}
			w.pass(10 * time.Second)
			restore()
			w.pass(row.late)
			w.succeed(w.run("open", 2))
			w.expect(row.want...)
		})
	}
}

// Pods that had gone when their Job moved are put back with their worker's etcd, and run for a
// moment beside those of the Job's next worker.
func TestPodsThatAreRestored(t *testing.T) {
	for name, row := range map[string]struct {
		kind schedule.Kind
		late time.Duration
		want []Rule
	}{
		"for a moment":              {kind: schedule.RestoreWorker},
		"for too long":              {kind: schedule.RestoreWorker, late: time.Minute, want: []Rule{Twice}},
		"its etcd was killed alone": {kind: schedule.KillEtcd, want: []Rule{Twice}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			before := w.run("open", 2)
			before.Pod.Spec.NodeName, before.Pod.Status.StartTime = "node", &metav1.Time{Time: time.Unix(1_000_000, 0)}
			w.see(before)
			gone := before
			gone.Gone = true
			w.see(gone)
			w.place("fenced")
			w.run("fenced", 2)
			w.pass(time.Minute)
			restore := w.fault("open", row.kind)
			restore()
			w.pass(row.late)
			w.see(before)
			w.allRun()
			w.expect(row.want...)
		})
	}
}

// A Job that has ended is seen again when the hub has been put back, and knows of its placement and
// its end anew.
func TestAJobThatEndedAndIsRestored(t *testing.T) {
	w := newWorld(t)
	w.version = 7
	w.runAll("open")
	w.hub(completed("0-3", 4), complete)
	w.fault(schedule.Hub, schedule.RestoreHub)()
	w.version = 5
	w.hub()
	w.expect()
}

// When the hub's etcd is put back, a Job is what it was; and what was deleted since may run again.
func TestAfterARestoreOfTheHub(t *testing.T) {
	for name, row := range map[string]struct {
		kind     schedule.Kind
		late     time.Duration
		goes     bool
		runsOnce bool
		want     []Rule
	}{
		"it's put back":           {kind: schedule.RestoreHub, runsOnce: true},
		"it's deleted and back":   {kind: schedule.RestoreHub, goes: true},
		"it wasn't deleted":       {kind: schedule.RestoreHub, want: []Rule{Again}},
		"it goes back later":      {kind: schedule.RestoreHub, late: time.Minute, runsOnce: true, want: []Rule{Back, Back}},
		"its etcd was killed":     {kind: schedule.KillHubEtcd, runsOnce: true, want: []Rule{Back, Back}},
		"it's deleted by its TTL": {kind: schedule.KillHubEtcd, goes: true, want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *story.Story) { s.End.Gone = true })
			w.place("open")
			restore := w.fault(schedule.Hub, row.kind)
			w.pass(time.Second)
			w.succeed(w.run("open", 2))
			w.hub(completed("2", 1))
			if row.goes {
				w.hubGone()
			}
			restore()
			w.pass(row.late)
			if row.runsOnce || row.goes {
				w.hub(completed("", 0))
			}
			if !row.runsOnce {
				w.mirrors["open"]++
				w.seeMirror("open", "hub-job", nil)
				w.succeed(w.run("open", 2))
			}
			w.expect(row.want...)
		})
	}
}
