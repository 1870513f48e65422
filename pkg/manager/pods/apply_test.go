package pods

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
)

// Workers that let each request hang, as many as there may be at a time, keep no look at a Pod
// waiting. Each of them has few requests under way, one for each Pod, and has its next one when one
// has ended.
func TestWorkersThatHangHoldNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, hangs := &reconciler{}, make(chan struct{})
		var sent atomic.Int32
		send := func() error {
			sent.Add(1)
			<-hangs
			return errors.New("a worker's answer")
		}
		const workers = concurrency
		ask := func() {
			for i := range 10 * workers {
				name := types.NamespacedName{Name: fmt.Sprint(i / workers / 2)} // each Pod asks twice
				r.inWorker(t.Context(), &seen{name: name, snapshot: snapshot{worker: fmt.Sprint(i % workers)}}, send)
			}
			synctest.Wait()
		}
		ask()
		if n := sent.Load(); n != requestsToOne*workers {
			t.Errorf("%d requests were sent", n)
		}
		close(hangs)
		synctest.Wait()
		if ask(); sent.Load() == requestsToOne*workers || len(r.busy.workers) > 0 {
			t.Errorf("still busy: %v", r.busy.workers)
		}
	})
}
