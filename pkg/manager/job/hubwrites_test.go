package job

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

func atEndOf(w *hubWrite) func() { return func() { w.end() } }

// Jobs that wait for the hub are looked at in the order of their coming, each once, and no more of
// them than may write.
func TestHubWrites(t *testing.T) {
	var enqueued []string
	h := newHubWrites(func(keys ...types.NamespacedName) {
		for _, key := range keys {
			enqueued = append(enqueued, key.Name)
		}
	})
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	var ends []func()
	for i := range dispatch.BusyFrom + 2 {
		ends = append(ends, atEndOf(h.begin(key(fmt.Sprint("writes ", i)))))
	}
	for _, name := range []string{"a", "b", "c", "b", "d", "e", "f", "g"} {
		h.note(key(name), true)
	}
	h.note(key("c"), false)
	h.note(key("unknown"), false)
	ends[0]()
	ends[1]()
	if len(enqueued) > 0 || h.inFlight() != dispatch.BusyFrom {
		t.Fatalf("%v are looked at while the hub is busy with %d writes", enqueued, h.inFlight())
	}
	ends[2]()
	if !slices.Equal(enqueued, []string{"a"}) {
		t.Fatalf("%v are looked at when there's room for one write", enqueued)
	}
	ends[3]()
	if !slices.Equal(enqueued, []string{"a", "b", "d"}) {
		t.Fatalf("%v are looked at when there's room for another one", enqueued)
	}
	h.note(key("a"), true)
	if !slices.Equal(enqueued, []string{"a", "b", "d", "a"}) {
		t.Fatalf("%v are looked at: one noted that it waits when the hub wasn't busy any more", enqueued)
	}
	for _, end := range ends[4:] {
		end()
	}
	if !slices.Equal(enqueued, []string{"a", "b", "d", "a", "e", "f", "g"}) || h.inFlight() != 0 || h.waiting.Len() > 0 {
		t.Errorf("looked at: %v; %d writes, %d wait", enqueued, h.inFlight(), h.waiting.Len())
	}
}

// The event of a write may come before its answer. That the Job is looked at for it would be once
// too often; for any other version it has to be.
func TestEventsBeforeTheAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		seen   []string
		answer string
		want   int
	}{
		"none":                       {nil, "2", 0},
		"the write's own":            {[]string{"2"}, "2", 0},
		"the one before it, too":     {[]string{"1", "2"}, "2", 0},
		"another one after it":       {[]string{"2", "3"}, "2", 1},
		"only the one before it":     {[]string{"1"}, "2", 1},
		"the write has failed":       {[]string{"2"}, "", 1},
		"it failed without an event": {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			h := newHubWrites(func(keys ...types.NamespacedName) { looks += len(keys) })
			if h.saw(jobKey, "1") {
				t.Error("a write is under way before it begins")
			}
			write := h.begin(jobKey)
			for _, version := range row.seen {
				if !h.saw(jobKey, version) || h.saw(types.NamespacedName{Name: "other"}, version) {
					t.Errorf("version %s: not the Job that is written", version)
				}
			}
			write.answer = row.answer
			isShown := write.end()
			if looks != row.want || h.saw(jobKey, "4") {
				t.Errorf("%d looks, want %d", looks, row.want)
			}
			if want := len(row.seen) > 0 && looks == 0; isShown != want {
				t.Errorf("the answer counts as shown: %t", isShown)
			}
		})
	}
}

// What waits for a busy hub is written when it's busy no more, without an event or the clock.
func TestAStartWaitsForTheHub(t *testing.T) {
	w := newWorld(t)
	var ends []func()
	for i := range dispatch.BusyFrom + 3 {
		ends = append(ends, atEndOf(w.Reconciler.writes.begin(types.NamespacedName{Name: fmt.Sprint(i)})))
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
