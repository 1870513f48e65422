package job

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// A Job that is wider than a worker needs all of it. When nodes go while it waits, it needs what is
// left.
func TestNodesThatGoAreNotNeeded(t *testing.T) {
	w := newFullWorld(t)
	w.worker("a").ledger.SetNode(placementtest.NewNode("extra").Has("cpu", "8", "pods", "110").Obj())
	w.queues(aJob("wide", pods(16), deadline(time.Hour)))
	w.wantPlaced(map[string]string{"wide": ""})
	w.worker("a").ledger.DeleteNode("extra")
	w.step(time.Minute)
	w.queues(aJob("later", pods(1)))
	w.ends("small-1", "small-2", "small-3", "small-4", "small-5", "small-6", "small-7", "small-8")
	w.wantPlaced(map[string]string{"wide": "a", "later": ""})
}

// The same for a Job that goes back to a worker that it prefers.
func TestNodesThatGoAreNotNeededToGoBack(t *testing.T) {
	w := newTieredWorld(t)
	w.worker("a").ledger.SetNode(placementtest.NewNode("extra").Has("cpu", "8", "pods", "110").Obj())
	w.queues(aJob("train", pods(16), prefers(ownedSoon)))
	w.wantPlaced(map[string]string{"train": "b"})
	w.step(15 * time.Minute)
	w.worker("a").ledger.DeleteNode("extra")
	w.step(time.Minute)
	w.ends("holder")
	w.step(11 * time.Minute)
	w.wantPlaced(map[string]string{"train": "a"})
}

// A Job that wouldn't fit in an idle worker is judged when there are nodes for it.
func TestNodesThatComeHelp(t *testing.T) {
	w := newFullWorld(t)
	w.queues(aJob("huge", pods(1), cpus("100")))
	before := w.asked()
	w.ends("small-1")
	if asked := w.asked(); asked["huge"] != before["huge"] {
		w.fail("it's judged though it can't fit")
	}
	w.worker("a").ledger.SetNode(placementtest.NewNode("large").Has("cpu", "128", "pods", "110").Obj())
	w.step(time.Second)
	w.wantPlaced(map[string]string{"huge": "a"})
}
