package copier

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

var (
	train = types.NamespacedName{Namespace: "team", Name: "train"}
	test  = types.NamespacedName{Namespace: "team", Name: "test"}
)

// in is where a Job is.
func in(job types.NamespacedName) Place { return Place{job, "w1"} }

func sourceOf(name string) Source {
	return Source{carry.Secret, types.NamespacedName{Namespace: "team", Name: name}}
}

// step is something that happens to a tracker; it returns the Jobs that are enqueued.
type step func(*Tracker) []types.NamespacedName

func tracked(job types.NamespacedName) step {
	return func(t *Tracker) []types.NamespacedName { t.Track(in(job), sourceOf("x")); return nil }
}

func recorded(job types.NamespacedName, version string) step {
	return func(t *Tracker) []types.NamespacedName {
		t.Record(in(job), Copied{Mirror: "mirror", Seen: map[Source]string{sourceOf("x"): version}, At: time.Now()})
		return nil
	}
}

func changed(version string) step {
	return func(t *Tracker) []types.NamespacedName {
		return slices.Collect(maps.Keys(t.SourceChanged(sourceOf("x"), version)))
	}
}

func forget(job types.NamespacedName) step {
	return func(t *Tracker) []types.NamespacedName { t.Forget(job); return nil }
}

func TestTracker(t *testing.T) {
	rows := map[string]struct {
		steps    []step
		enqueued []types.NamespacedName // by the last step
		current  bool                   // what was copied for train, after it
	}{
		"nothing is known":                   {nil, nil, false},
		"carried":                            {[]step{tracked(train), recorded(train, "7")}, nil, true},
		"the watch lags behind":              {[]step{tracked(train), recorded(train, "7"), changed("5")}, nil, true},
		"the watch shows what was carried":   {[]step{tracked(train), recorded(train, "7"), changed("7")}, nil, true},
		"the source changes":                 {[]step{tracked(train), recorded(train, "7"), changed("10")}, []types.NamespacedName{train}, false},
		"it changes while it's carried":      {[]step{tracked(train), changed("10"), recorded(train, "7")}, nil, false},
		"a change that nobody waits for":     {[]step{changed("10"), tracked(train), recorded(train, "7")}, nil, true},
		"it's missing":                       {[]step{tracked(train), recorded(train, "")}, nil, true},
		"it appears":                         {[]step{tracked(train), recorded(train, ""), changed("5")}, []types.NamespacedName{train}, false},
		"it was gone, the watch didn't know": {[]step{tracked(train), changed("5"), recorded(train, "5"), changed("5")}, nil, true},
		"one of two had it before":           {[]step{tracked(train), recorded(train, "10"), tracked(test), recorded(test, "7"), changed("10")}, []types.NamespacedName{test}, true},
		"not carried yet":                    {[]step{tracked(test), changed("10")}, []types.NamespacedName{test}, false},
		"forgotten":                          {[]step{tracked(train), recorded(train, "7"), forget(train), changed("10")}, nil, false},
		"a neighbour is forgotten":           {[]step{tracked(train), recorded(train, "7"), tracked(test), forget(test), changed("10")}, []types.NamespacedName{train}, false},
		"no version at all":                  {[]step{tracked(train), recorded(train, "7"), changed("x")}, nil, true},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(clocktesting.NewFakePassiveClock(noon))
			var enqueued []types.NamespacedName
			for _, step := range row.steps {
				enqueued = step(tracker)
			}
			if !slices.Equal(enqueued, row.enqueued) {
				t.Errorf("woke %v, want %v", enqueued, row.enqueued)
			}
			if _, current := tracker.Get(in(train), "mirror"); current != row.current {
				t.Errorf("current: %t", current)
			}
			if _, current := tracker.Get(in(train), "next mirror"); current {
				t.Error("current for a mirror that it wasn't carried for")
			}
		})
	}
}

// Nothing is kept of Jobs that are gone.
func TestTrackerForgets(t *testing.T) {
	tracker := NewTracker(clocktesting.NewFakePassiveClock(noon))
	for _, job := range []types.NamespacedName{train, test} {
		tracker.Track(in(job), sourceOf("x"), sourceOf(job.Name))
		tracker.SourceChanged(sourceOf("x"), "7")
		tracker.Record(in(job), Copied{Seen: map[Source]string{sourceOf("x"): "7"}})
	}
	tracker.Forget(train)
	if tracker.version(sourceOf("x")) != "7" {
		t.Error("what another Job needs is forgotten")
	}
	tracker.Forget(test)
	if n := len(tracker.places) + len(tracker.users) + len(tracker.newest) + len(tracker.namespaces) + tracker.counted; n != 0 {
		t.Errorf("%d entries are left: %+v", n, tracker)
	}
}

// Very many Jobs have one source, which a tenant changes all the time: those that have their turn
// aren't looked at until they have copied it.
func TestAChangeLooksAtThoseWithoutATurn(t *testing.T) {
	const jobs = 1000
	tracker := NewTracker(clocktesting.NewFakePassiveClock(noon))
	source := sourceOf("hot")
	place := func(i int) Place { return in(types.NamespacedName{Namespace: "greedy", Name: strconv.Itoa(i)}) }
	copied := func(i int, version string) {
		tracker.Record(place(i), Copied{Mirror: "mirror", Seen: map[Source]string{source: version}, At: noon})
	}
	for i := range jobs {
		tracker.Track(place(i), source)
		if i%2 == 0 { // the others haven't copied it yet
			copied(i, "1")
		}
	}
	for i, want := range []int{jobs, 0, 0} {
		version := 2 + i
		looks := tracker.users[source].asking.Len()
		if woken := len(tracker.SourceChanged(source, strconv.Itoa(version))); woken != want || looks != want {
			t.Errorf("version %d: %d of %d are woken, want %d", version, woken, looks, want)
		}
	}
	copied(7, "4")
	copied(8, "3")
	if woken := tracker.SourceChanged(source, "5"); len(woken) != 1 || tracker.users[source].asking.Len() > 0 {
		t.Errorf("woken: %v", woken)
	}
}
