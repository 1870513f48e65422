package waiting_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/change"
	"github.com/jobferry/jobferry/pkg/manager/placement/waiting"
)

// asked counts how often it's asked what ends.
type asked struct {
	*fleet
	ends int
}

func (a *asked) Ends(worker string) []waiting.End {
	a.ends++
	return a.fleet.Ends(worker)
}

// newTimelessLine has a Job that waits for both workers, of which nobody can say when they have room, and one behind
// it.
func newTimelessLine(t *testing.T) (*asked, *waiting.Line, *simJob) {
	t.Helper()
	f := newFullFleet()
	f.workers = append(f.workers, newFullFleet().workers...)
	f.workers[0].name, f.workers[1].name = "v", "w"
	for _, w := range f.workers {
		for _, job := range w.running {
			job.Runtime, job.start = 0, noon.Add(-time.Hour)
		}
	}
	wide, later := newSimJob(8, 0, 0, 3, "8"), newSimJob(9, 0, time.Second, 1, "8")
	for _, name := range []string{"v", "w"} {
		wide.Needs[name], later.Needs[name] = waiting.Need{Pods: 3}, waiting.Need{Lacks: waiting.Other, HelpedBy: change.Room}
	}
	f.jobs = map[types.NamespacedName]*simJob{wide.Key: wide, later.Key: later}
	line := &waiting.Line{}
	line.Add(&wide.Job)
	line.Add(&later.Job)
	a := &asked{fleet: f}
	line.Walk(f.now, nil, a)
	if r := line.Reservation(&wide.Job); r == nil || !r.Start.IsZero() || r.Worker != "v" {
		t.Fatalf("reservation %+v, want one of v without a time", r)
	}
	return a, line, wide
}

// A reservation without a time isn't made anew by each walk.
func TestTimelessReservationIsKept(t *testing.T) {
	f, line, wide := newTimelessLine(t)
	r, ends := line.Reservation(&wide.Job), f.ends
	for range 10 {
		f.now = f.now.Add(time.Minute)
		line.Walk(f.now, nil, f)
	}
	if line.Reservation(&wide.Job) != r || f.ends != ends || f.tried > 0 {
		t.Errorf("in ten walks ends are asked for %d times, and %d Jobs tried", f.ends-ends, f.tried)
	}
	f.now = f.now.Add(time.Minute)
	line.Walk(f.now, freed("w"), f)
	if line.Reservation(&wide.Job) != r {
		t.Error("it's made anew, though another worker is no better")
	}
	f.now = f.now.Add(2 * time.Hour)
	line.Walk(f.now, nil, f)
	if line.Reservation(&wide.Job) == r {
		t.Error("it's kept, although its time is over")
	}
}

// It's given up for another worker of which it becomes known when that has room, though that is late.
func TestATimeIsBetterThanNone(t *testing.T) {
	f, line, wide := newTimelessLine(t)
	for _, job := range f.worker("w").running {
		job.Runtime = 2*time.Hour + time.Minute // within twice of what nobody knows
	}
	line.Walk(f.now, freed("w"), f)
	if r := line.Reservation(&wide.Job); r == nil || r.Worker != "w" || r.Start.IsZero() {
		t.Errorf("reservation %+v, want one of w with a time", r)
	}
}
