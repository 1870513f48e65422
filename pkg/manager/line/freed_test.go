package line

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// What is freed before the last walk of a round is looked at for those who were judged before.
func TestRoomComesAtTheEndOfARound(t *testing.T) {
	looks := 0
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	f := &freed{clock: clock, waiting: func() int { return 0 }, look: func() { looks++ }}
	f.add(moreRoom, "a")
	clock.Step(batchFreed)
	f.take()
	f.resume() // the walk stops
	f.add(moreRoom, "b")
	clock.Step(batchFreed)
	f.take()
	f.done()
	clock.Step(batchFreed)
	if workers, _ := f.take(); looks != 3 || workers["b"] == nil {
		t.Errorf("%d looks, the last at %v", looks, workers)
	}
	f.done()
	if f.isPending() || clock.HasWaiters() {
		t.Error("there is no rest")
	}
}
