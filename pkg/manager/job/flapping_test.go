package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/flapping"
)

// A worker that changes all the time, as its API server pleases, has the Jobs that wait looked at
// now and then, and keeps none of them from another worker, or from it.
func TestAFlappingWorker(t *testing.T) {
	w := newFullWorld(t)
	for i := range 20 {
		w.submits(aJob(fmt.Sprint("waits-", i), pods(1), cpus("100")))
	}
	w.step(time.Minute)
	looks := func(worker string) (looks int) {
		for range 10 * flapping.SteadyChanges {
			w.queue.requests, w.queue.first = nil, 0
			w.triggers.WorkerChanged(worker)
			if len(w.queue.requests) >= 20 {
				looks++
			}
		}
		return looks
	}
	if n := looks("b"); n != flapping.SteadyChanges {
		w.fail("all Jobs were looked at %d times", n)
	}
	if n := looks("a"); n != flapping.SteadyChanges {
		w.fail("another worker had all Jobs looked at %d times", n)
	}
	w.queues(aJob("fits", pods(1)))
	w.worker("b").drains(false)
	w.step(time.Second)
	w.wantPlaced(map[string]string{"fits": ""})
	w.step(flapping.Delay)
	w.wantPlaced(map[string]string{"fits": "b"})
}
