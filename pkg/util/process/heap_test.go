package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 100}, {smallHeap / 4, 100}, {smallHeap, 100}, {smallHeap * 4, 50}, {smallHeap * 100, leastGrowth},
	} {
		if got := growth(c.live); got != c.want {
			t.Errorf("%d bytes live: GOGC %d, want %d", c.live, got, c.want)
		}
	}
}

// The percent follows what is live, collection after collection.
func TestPaceCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	paceCollector()
	awaitPercent := func(is func(percent uint64) bool) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}; ; runtime.GC() {
			if metrics.Read(sample); is(sample[0].Value.Uint64()) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("GOGC is %d, with %d bytes live", sample[0].Value.Uint64(), liveHeap())
			}
		}
	}
	awaitPercent(func(p uint64) bool { return p == 100 })
	held := make([]byte, 2*smallHeap)
	awaitPercent(func(p uint64) bool { return p >= leastGrowth && p < 100 })
	runtime.KeepAlive(held)
	awaitPercent(func(p uint64) bool { return p == 100 })
}
