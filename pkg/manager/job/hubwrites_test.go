package job

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// Jobs that wait for the hub are looked at in the order of their coming, each once, and no more of
// them at a time than may write.
func TestHubWrites(t *testing.T) {
	var enqueued []string
	h := newHubWrites(func(keys ...types.NamespacedName) {
		for _, key := range keys {
			enqueued = append(enqueued, key.Name)
		}
	})
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	var ends []func()
	for range dispatch.BusyFrom + 2 {
		ends = append(ends, h.begin())
	}
	for _, name := range []string{"a", "b", "c", "b", "d", "e", "f", "g"} {
		h.note(key(name), true)
	}
	h.note(key("c"), false)
	h.note(key("unknown"), false)
	for _, end := range ends[1:] {
		end()
	}
	if len(enqueued) > 0 || h.inFlight() != 1 {
		t.Fatalf("%v are looked at while there's a write in flight, or %d", enqueued, h.inFlight())
	}
	ends[0]()
	if !slices.Equal(enqueued, []string{"a", "b", "d", "e"}) {
		t.Fatalf("%v are looked at when the hub is at rest", enqueued)
	}
	h.note(key("a"), true)
	if !slices.Equal(enqueued, []string{"a", "b", "d", "e", "a"}) {
		t.Fatalf("%v are looked at: one noted that it waits when the hub was at rest already", enqueued)
	}
	h.begin()()
	if !slices.Equal(enqueued, []string{"a", "b", "d", "e", "a", "f", "g"}) || h.inFlight() != 0 || len(h.at)+h.waiting.Len() > 0 {
		t.Errorf("looked at: %v; %d writes, %d wait", enqueued, h.inFlight(), h.waiting.Len())
	}
}

// What waits for a busy hub is written when it's at rest, without an event or the clock.
func TestAStartWaitsForTheHub(t *testing.T) {
	w := newWorld(t)
	var ends []func()
	for range dispatch.BusyFrom + 3 {
		ends = append(ends, w.Reconciler.writes.begin())
	}
	w.submits(aJob("train"))
	w.run()
	if w.worker("a").api.jobs[jobKey].Status.StartTime == nil || w.hub.jobs[jobKey].Status.StartTime != nil {
		w.fail("the start is shown while the hub is busy, or there's none")
	}
	for _, end := range ends {
		end()
	}
	w.run()
	if w.hub.jobs[jobKey].Status.StartTime == nil {
		w.fail("the start isn't shown")
	}
}
