package dispatchedjobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// why is what is held of a Job, in the namespace team.
func (s *Server) why(name string) string { return s.reasons.of(about(name).Subject).Message }

func TestReasons(t *testing.T) {
	s, _ := newServer()
	f, other := s.reasons.subscribe("team"), s.reasons.subscribe("other")
	all := s.reasons.subscribe("")
	l := newListed()
	l.add([]corev1.Event{
		*event("a", "Placed", "placed", 3), *event("a", "Pending", "waits", 1), // in no order
		*event("b", "Pending", "waits", 2), *event("b", "Mirrored", "mirrored", 1),
	})
	s.reasons.replace(l.held)
	if s.why("a") != "" || s.why("b") != "waits" {
		t.Errorf("listed: %q, %q", s.why("a"), s.why("b"))
	}
	for i, step := range []struct {
		kind    watch.EventType
		event   *corev1.Event
		want    string // of a
		changes bool
	}{
		{watch.Added, event("a", "Pending", "waits again", 4), "waits again", true},
		{watch.Modified, event("a", "Pending", "waits again", 5), "waits again", false},
		{watch.Added, event("a", "Pending", "waits longer", 6), "waits longer", true},
		// an old one has expired
		{watch.Deleted, event("a", "Pending", "waits again", 5), "waits longer", false},
		{watch.Added, event("a", "Pending", "a lie", 7, in("evil")), "waits longer", false},
		{watch.Added, event("a", "Placed", "placed", 8), "", true},
		{watch.Added, event("a", "Pending", "waits", 9), "waits", true},
		{watch.Deleted, event("a", "Pending", "waits", 9), "", true},
	} {
		f.take(maxReasons)
		s.reasons.apply(step.kind, step.event)
		changes := slices.Contains(f.take(maxReasons), about("a"))
		if s.why("a") != step.want || changes != step.changes {
			t.Errorf("step %d: %q, changes %v", i, s.why("a"), changes)
		}
	}
	s.reasons.replace(newHeld()) // b's event has expired while the hub wasn't watched
	if got := f.take(maxReasons); !slices.Equal(got, []change{about("b")}) {
		t.Errorf("after another list: %v", got)
	}
	if got := other.take(maxReasons); got != nil {
		t.Errorf("of another namespace: %v", got)
	}
	if got := all.take(maxReasons); len(got) != 3 { // a, b, and the one of namespace evil
		t.Errorf("of all namespaces: %v", got)
	}
	for _, f := range []*feed{f, other, all} {
		f.end()
	}
	if len(s.reasons.feeds)+s.reasons.changes.Holders() != 0 || len(s.reasons.held.reasons) != 0 || s.reasons.held.places.Holders() != 0 {
		t.Errorf("left: %v %+v", s.reasons.feeds, s.reasons.held)
	}
}

// A tenant that writes events without an end takes a quarter of the places, and the next one a
// quarter of what is free.
func TestAFloodOfEvents(t *testing.T) {
	s, _ := newServer()
	f := s.reasons.subscribe("")
	for _, namespace := range []string{"evil", "team"} {
		for i := range maxReasons {
			s.reasons.apply(watch.Added, event(fmt.Sprint(i), "Pending", "lies", 1, in(namespace)))
		}
	}
	held := s.reasons.held.places
	if n := held.Of("evil"); n > maxReasons/4+1 || n < maxReasons/8 {
		t.Errorf("the tenant has %d places", n)
	}
	if held.Of("team") < maxReasons/8 {
		t.Errorf("the next one has %d places", held.Of("team"))
	}
	if len(f.take(2*maxReasons)) > maxReasons {
		t.Error("the feed has no bound")
	}
	l := newListed()
	many := make([]corev1.Event, 0, maxListed+1)
	for i := range cap(many) {
		many = append(many, *event(fmt.Sprint(i), "Pending", "lies", 1))
	}
	if l.add(many); len(l.newest) != maxListed/5 || len(l.reasons) != maxReasons/5 {
		t.Errorf("%d of one namespace are listed, and %d wait", len(l.newest), len(l.reasons))
	}
	if l.add([]corev1.Event{*event("next", "Pending", "waits", 1, in("other"))}); l.places.Of("other") != 1 {
		t.Error("the next namespace has no place")
	}
}

// Very many watches have very many Jobs each, of which the next event has been removed since.
func TestManyFeedsTakeLittleMemory(t *testing.T) {
	const watches, most = 100, 16 << 20
	s, _ := newServer()
	for range watches {
		s.reasons.subscribe("")
	}
	before := heap()
	for i := range maxReasons {
		for _, kind := range []watch.EventType{watch.Added, watch.Deleted} {
			s.reasons.apply(kind, event(fmt.Sprintf("a-job-of-some-tenant-%d", i), "Pending", "waits", 1))
		}
	}
	grown := heap() - before
	t.Logf("%d KiB", grown>>10)
	if grown > most {
		t.Errorf("%d feeds of %d Jobs take %d MiB", watches, maxReasons, grown>>20)
	}
	for f := range s.reasons.feeds[""].all {
		if n := len(f.take(2 * maxReasons)); n != maxReasons {
			t.Fatalf("a feed has %d Jobs", n)
		}
	}
}

// A watch that takes no changes leaves others theirs, and loses the oldest ones of a namespace that
// has very many.
func TestAWatchThatTakesNoChanges(t *testing.T) {
	const most, more = maxChanges / 5, 1000
	s, _ := newServer()
	slow, quick, other, all := s.reasons.subscribe("team"), s.reasons.subscribe("team"), s.reasons.subscribe("other"), s.reasons.subscribe("")
	told := func(namespace string, i int) change {
		c := change{jobview.Subject{Namespace: namespace}, fmt.Sprint(i)}
		s.reasons.notify(c)
		return c
	}
	for i := range most + more {
		c := told("team", i)
		if i%100 < 99 {
			continue
		}
		if got := quick.take(200); len(got) != 100 || got[99] != c {
			t.Fatalf("the quick one has %d changes until %v", len(got), c)
		}
	}
	if got := slow.take(2 * most); len(got) != most || got[0].name != fmt.Sprint(more) {
		t.Errorf("the slow one has %d changes from %+v on", len(got), got[:1])
	}
	c := told("other", 1)
	if !slices.Equal(other.take(2), []change{c}) || s.reasons.changes.Holders() != 0 {
		t.Errorf("another isn't told of %v, or %d changes are left", c, s.reasons.changes.Holders())
	}
	if got := all.take(2 * most); len(got) != most+1 || got[most] != c {
		t.Errorf("one of all namespaces is told of %d changes, until %v", len(got), got[len(got)-1])
	}
}

// A watch of all namespaces takes no changes, of which a few namespaces have very many: another one
// is told of those of the next namespace.
func TestASlowWatchOfAllNamespaces(t *testing.T) {
	s, _ := newServer()
	s.reasons.subscribe("")
	quick := s.reasons.subscribe("")
	for namespace := range 60 {
		for i := range maxChanges / 4 {
			s.reasons.notify(change{jobview.Subject{Namespace: fmt.Sprint(namespace)}, fmt.Sprint(i)})
		}
		quick.take(maxChanges)
	}
	c := change{jobview.Subject{Namespace: "team"}, "a"}
	if s.reasons.notify(c); !slices.Equal(quick.take(2), []change{c}) {
		t.Error("a watch isn't told of the next namespace")
	}
}

// The events of very many Jobs are listed at the start, each with a long text, and in no order:
// what is held meanwhile is little more than what is shown.
func TestTheFirstListTakesLittleMemory(t *testing.T) {
	const pages, most = 2 * maxListed / pageSize, 48 << 20
	s, hub := newServer()
	long := strings.Repeat("x", 2*text.MaxMessage)
	asked, before, peak := 0, heap(), int64(0)
	hub.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		if asked%20 == 0 {
			peak = max(peak, heap()-before)
		}
		page := &corev1.EventList{ListMeta: metav1.ListMeta{Continue: "more"}}
		for i := range pageSize {
			name := fmt.Sprint("a-job-of-some-tenant-", asked*pageSize/2+i/2)
			reason := []string{"Pending", "Placed"}[i%2] // of every other Job, the older one comes last
			page.Items = append(page.Items, *event(name, reason, fmt.Sprint(name, long), 1+i/2%2*(1-i%2), in(fmt.Sprint("team-", asked%200))))
		}
		if asked++; asked == pages {
			page.Continue = ""
		}
		return true, page, nil
	})
	if _, err := s.reasons.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB", peak>>10)
	if n := len(s.reasons.held.reasons); peak > most || n < maxReasons/2 {
		t.Errorf("%d reasons are held, in %d MiB at most", n, peak>>20)
	}
}

// A feed tells of what is left.
func TestAFeedGoesOn(t *testing.T) {
	s, _ := newServer()
	f := s.reasons.subscribe("")
	for i := range 3 {
		s.reasons.notify(change{jobview.Subject{Namespace: "team"}, fmt.Sprint(i)})
	}
	for left := 3; left > 0; left-- {
		<-f.changed
		if got := f.take(1); len(got) != 1 {
			t.Fatalf("%v", got)
		}
	}
	select {
	case <-f.changed:
		t.Error("it tells of nothing")
	default:
	}
}

func TestIdle(t *testing.T) {
	s, _ := newServer()
	_, release := s.reasons.use()
	s.reasons.used = time.Now().Add(-2 * idleReasons)
	if s.reasons.isIdle() {
		t.Error("idle while it's used")
	}
	release()
	release() // counts once
	if s.reasons.isIdle() {
		t.Error("idle at once")
	}
	s.reasons.used = time.Now().Add(-2 * idleReasons)
	if !s.reasons.isIdle() || s.reasons.users != 0 {
		t.Errorf("it's never idle: %d users", s.reasons.users)
	}
}
