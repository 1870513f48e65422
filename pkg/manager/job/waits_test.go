package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// waitsFor has the clock go on, and checks why the Job waits, and how often the manager has written
// that until now.
func (w *world) waitsFor(d time.Duration, want hubstate.Wait, writes int) {
	w.Helper()
	w.step(d)
	got := hubstate.Get(w.hub.jobs[jobKey], hubstate.Waits)
	if n := w.countStatusWrites(); got != string(want) || n != writes {
		w.fail("the Job waits for %q, want %q; it was written %d times, want %d", got, string(want), n, writes)
	}
}

func (w *world) countStatusWrites() (n int) {
	for _, line := range w.log {
		if strings.HasSuffix(line, "hub: status") {
			n++
		}
	}
	return n
}

func (w *world) cordons(is bool) {
	for _, v := range w.registered() {
		v.drains(is)
	}
}

// A Job that waits says why, in a condition: after a second, once a minute at most, and not again
// after a restart. Its transition time is since when it waits.
func TestAJobSaysWhyItWaits(t *testing.T) {
	w := newWorld(t)
	w.cordons(true)
	w.submits(aJob("train"))
	w.waitsFor(waitShownAfter-time.Millisecond, "", 0)
	w.waitsFor(time.Second, hubstate.NoRoom, 1)
	began := w.hub.jobs[jobKey].Status.Conditions[0].LastTransitionTime
	w.waitsFor(time.Hour, hubstate.NoRoom, 1)
	w.start()
	w.waitsFor(time.Hour, hubstate.NoRoom, 1)

	w.edits("asks for much", cpus("100"))
	w.waitsFor(time.Second, hubstate.NoRoom, 1)
	w.cordons(false)
	w.waitsFor(2*time.Second, hubstate.NoWorker, 2) // an hour has passed since the last
	w.edits("asks for less", cpus("1"))
	w.cordons(true)
	w.waitsFor(waitInterval-2*time.Second, hubstate.NoWorker, 2)
	w.waitsFor(2*time.Second, hubstate.NoRoom, 3)
	if c := w.hub.jobs[jobKey].Status.Conditions[0]; !c.LastTransitionTime.Equal(&began) || c.Message != hubstate.NoRoom.String() {
		w.fail("waits since %s, want %s: %+v", c.LastTransitionTime, began, c)
	}

	w.suspends()
	w.waitsFor(2*waitInterval, hubstate.Suspended, 4)
	w.resumes()
	w.cordons(false)
	w.step(time.Second)
	placed := w.hub.jobs[jobKey]
	if hubstate.Get(placed, hubstate.Cluster) == "" || hubstate.Get(placed, hubstate.Waits) != "" {
		w.fail("%+v", placed.Status.Conditions)
	}
}

// A Job that is placed within a second costs no write more.
func TestAJobThatIsPlacedSoonSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.cordons(true)
	w.submits(aJob("train"))
	w.step(waitShownAfter / 2)
	w.cordons(false)
	w.step(time.Minute)
	for _, line := range w.log {
		if strings.Contains(line, "waits") {
			w.fail("%s", line)
		}
	}
	if c := w.hub.jobs[jobKey].Status.Conditions[0]; c.LastProbeTime != (batchv1.JobCondition{}).LastProbeTime {
		w.fail("it waited: %+v", c)
	}
}

// However many Jobs of a namespace wait, they cost so many writes in a second, and those of another
// namespace don't wait for them.
func TestManyJobsThatWaitCostLittle(t *testing.T) {
	w := newWorld(t)
	w.cordons(true)
	const crowd = 300
	for i := range crowd {
		w.submits(aJob(fmt.Sprintf("job-%d", i), func(job *batchv1.Job) { job.Namespace = "crowd" }))
	}
	w.submits(aJob("train"))
	for second := range 10 {
		w.step(time.Second)
		if most := 1 + int(waitsPerSecond*(waitsAhead.Seconds()+float64(second)+1)); w.countStatusWrites() > most {
			w.fail("%d writes after %d s, want at most %d", w.countStatusWrites(), second+1, most)
		}
	}
	if got := hubstate.Get(w.hub.jobs[jobKey], hubstate.Waits); got != string(hubstate.NoRoom) {
		w.fail("the Job of another namespace waits for %q", got)
	}
	w.step(crowd / waitsPerSecond * time.Second)
	if n := w.countStatusWrites(); n != crowd+1 {
		w.fail("%d writes for %d Jobs", n, crowd+1)
	}
}
