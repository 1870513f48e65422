package scheduling

import (
	"strings"
	"testing"
)

// madeUp panics, by a nil that is taken for granted, like the allocator does for objects that no
// API server stores.
type madeUp struct{ Devices }

// A panic is an answer about one worker and one Job: the Job waits, and the same nodes are judged
// as ever after it.
func TestPanicIsAnAnswer(t *testing.T) {
	w := &world{}
	w.node("n")
	s := NewSnapshot(w.nodes, nil, nil)
	s.Devices = madeUp{}
	for range 2 {
		a := jobOf(plain).Judge(s, 1)
		expect(t, a, FitsLater, 0, cantJudge.Message)
		if !strings.Contains(a.Panic, "nil pointer") || !strings.Contains(a.Panic, "Trial") || a.Needed() != 1 {
			t.Errorf("panic %q, %d needed", a.Panic, a.Needed())
		}
	}
	s.Devices = nil
	if a := jobOf(plain).Judge(s, 1); a.Panic != "" || a.Verdict != FitsNow {
		t.Errorf("%v, panic %q", a.Verdict, a.Panic)
	}
}
