package clusters

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// TestLossClock holds the clock to its meaning: it's set exactly while the worker isn't Ready, to
// the time of the first observation of that stretch. Observed is when the last run of good, or of
// bad, observations began.
func TestLossClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Health{State: Connecting}
		var first, observed time.Time
		was := 0
		states := []State{Ready, Disconnected, Refused, Connecting}
		for i := range rapid.IntRange(1, 30).Draw(t, "observations") {
			v := link.Observation{State: rapid.SampledFrom(states).Draw(t, "state"), At: time.Unix(int64(i+1), 0)}
			switch {
			case v.State == Ready:
				first = time.Time{}
			case v.State != Connecting && first.IsZero():
				first = v.At
			}
			if is := reachability(v.State); is != was || observed.IsZero() {
				was, observed = is, v.At
			}
			if h = h.after(v); !h.Since.Equal(first) || !h.LossClock.Equal(first) || !h.Observed.Equal(observed) {
				t.Fatalf("since %v, clock %v, want %v; observed %v, want %v", h.Since, h.LossClock, first, h.Observed, observed)
			}
		}
	})
}

func TestOnlyTheContactIsNoNews(t *testing.T) {
	h := Health{State: Ready, Version: "v1.36.0", Observed: time.Unix(1, 0)}
	at := time.Unix(5, 0)
	same := h.after(link.Observation{State: Ready, At: at, Answered: true, Version: "v1.36.0"})
	if !same.LastContact.Equal(at) || !same.sameToOthers(h) {
		t.Errorf("%+v", same)
	}
	if upgraded := h.after(link.Observation{State: Ready, Version: "v1.36.1"}); upgraded.sameToOthers(h) {
		t.Error("an upgrade is nothing to others")
	}
}

func TestMinor(t *testing.T) {
	for text, want := range map[string]int{
		"v1.33.4": 33, "1.33": 33, "v1.33.4-eks-1a2b3c": 33, "v1.33.4+k3s1": 33, "": 0, "latest": 0, "v2.5.0": 0,
	} {
		if got := (Health{Version: text}).Minor(); got != want {
			t.Errorf("%q: 1.%d, want 1.%d", text, got, want)
		}
	}
}
