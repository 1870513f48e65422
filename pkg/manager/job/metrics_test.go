package job

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

// A Job that goes when it was expected to has kept its reservation, and one for which others ran
// for longer than guessed has missed it.
func TestReservationMetrics(t *testing.T) {
	for _, row := range []struct {
		name         string
		runs         func(*batchv1.Job)
		long         time.Duration
		kept, missed float64
	}{
		{"those that run end at once", deadline(time.Minute), 0, 1, 0},
		{"those that run end much later than they may", deadline(time.Minute), time.Hour, 0, 1},
		{"nobody can say when those end that run", pods(8), time.Hour, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.worker("b").drains(true)
			w.queues(aJob("runs", pods(8), row.runs), aJob("wide", pods(8)))
			count := func(result string) float64 { return counted(t, "jobferry_reservations_total", result) }
			kept, missed := count("kept"), count("missed")
			w.step(row.long)
			w.ends("runs")
			w.wantPlaced(map[string]string{"wide": "a"})
			if kept, missed = count("kept")-kept, count("missed")-missed; kept != row.kept || missed != row.missed {
				w.fail("%v are kept and %v missed, want %v and %v", kept, missed, row.kept, row.missed)
			}
		})
	}
}

// How long a Job waits for its first placement is counted by its PriorityClass.
func TestPendingMetrics(t *testing.T) {
	w := newFullWorld(t)
	w.classes = priorityClasses{schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}}
	seconds := func(class string) float64 { return counted(t, "jobferry_pending_duration_seconds", class) }
	high, none := seconds("high"), seconds("")
	w.queues(aJob("urgent", pods(1), ofClass("high")))
	w.step(30 * time.Minute)
	w.ends("small-1")
	w.wantPlaced(map[string]string{"urgent": "a"})
	if took := seconds("high") - high; took < 1800 || took > 1860 || seconds("") != none {
		w.fail("it counts as %v s, and those without a class as %v s", took, seconds("")-none)
	}
}

// A stockout is counted once, however many Jobs wait there.
func TestStockoutMetrics(t *testing.T) {
	w := newStockoutWorld(t)
	before := counted(t, "jobferry_pod_start_timeouts_total", "a")
	w.queues(aJob("first", onNew), aJob("second", onNew))
	w.minutes(9)
	if n := counted(t, "jobferry_pod_start_timeouts_total", "a"); n != before {
		w.fail("%v are counted before the timeout", n-before)
	}
	w.minutes(2)
	w.wantPlaced(map[string]string{"first": "b", "second": "b"})
	if n := counted(t, "jobferry_pod_start_timeouts_total", "a"); n-before != 1 {
		w.fail("%v are counted, want 1", n-before)
	}
}

// TestStatesAreCounted: the metric has the state that all show.
func TestStatesAreCounted(t *testing.T) {
	for _, row := range jobviewtest.Jobs() {
		w := newWorld(t)
		for name, state := range map[string]clusters.State{"a": clusters.Ready, "b": clusters.Disconnected} {
			w.worker(name).view.State = state
		}
		job := row.Job
		worker := map[string]string{"west": "a", "south": "b"}[hubstate.Get(job, hubstate.Cluster)]
		if shared := hubstate.Get(job, hubstate.Shards); shared != "" {
			continue // it counts for each of its workers
		}
		hubstate.Set(job, hubstate.Changes{hubstate.Cluster: worker})
		w.store.observe(job, w.clock.Now())
		if got := w.collected(); got[strings.TrimSpace("jobs "+worker+" "+string(row.Want))] != 1 && got["jobs  "+string(row.Want)] != 1 {
			t.Errorf("%s: counts %v, want one that is %s on %q", row.Name, got, row.Want, worker)
		}
	}
}
