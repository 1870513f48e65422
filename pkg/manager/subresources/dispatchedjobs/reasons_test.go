package dispatchedjobs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/jobview"
)

// why is what is held of a Job, in the namespace team.
func (s *Server) why(name string) string { return s.reasons.of(about(name).Subject).Message }

func TestReasons(t *testing.T) {
	s, _ := newServer()
	f, other := s.reasons.subscribe("team"), s.reasons.subscribe("other")
	all := s.reasons.subscribe("")
	l := newHeld(maxListed)
	l.list([]corev1.Event{
		*event("a", "Placed", "placed", 3), *event("a", "Pending", "waits", 1), // in no order
		*event("b", "Pending", "waits", 2), *event("b", "Mirrored", "mirrored", 1),
	})
	s.reasons.replace(l)
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
	s.reasons.replace(newHeld(maxListed)) // b's event has expired while the hub wasn't watched
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
	if len(s.reasons.feeds) != 0 || len(s.reasons.held.reasons) != 0 || len(s.reasons.held.of) != 0 {
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
	of := s.reasons.held.of
	if n := of["evil"]; n > maxReasons/4+1 || n < maxReasons/8 {
		t.Errorf("the tenant has %d places", n)
	}
	if of["team"] < maxReasons/8 {
		t.Errorf("the next one has %d places", of["team"])
	}
	if len(f.take(2*maxReasons)) > maxReasons {
		t.Error("the feed has no bound")
	}
	l := newHeld(maxListed)
	many := make([]corev1.Event, 0, maxListed+1)
	for i := range cap(many) {
		many = append(many, *event(fmt.Sprint(i), "Pending", "lies", 1))
	}
	if l.list(many); len(l.reasons) != maxListed/(share+1) {
		t.Errorf("%d of one namespace are listed", len(l.reasons))
	}
	if l.list([]corev1.Event{*event("next", "Pending", "waits", 1, in("other"))}); l.of["other"] != 1 {
		t.Error("the next namespace has no place")
	}
}

// A feed tells of what is left.
func TestAFeedGoesOn(t *testing.T) {
	s, _ := newServer()
	f := s.reasons.subscribe("")
	for i := range 3 {
		f.add(change{jobview.Subject{Namespace: "team"}, fmt.Sprint(i)})
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
