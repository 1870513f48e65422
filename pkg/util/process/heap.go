package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// minHeap is how many bytes the heap may take before garbage is collected. By Go's default it may
// double: one of 20 MB does so ten times a second while very many Jobs come.
const minHeap = 64 << 20

// steps of GOGC, in percent: each change stops the program for a moment.
const steps = 25

// SpareCollections has no garbage collected before the heap has minHeap bytes. It leaves GOGC alone
// if the environment sets it, and GOMEMLIMIT holds as before.
func SpareCollections() {
	if os.Getenv("GOGC") == "" {
		(&collections{percent: 100}).spare()
	}
}

// collections changes GOGC after each of them.
type collections struct{ percent int }

func (c *collections) spare() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 {
		if p := percentOf(live[0].Value.Uint64()); p != c.percent {
			c.percent = p
			debug.SetGCPercent(p)
		}
	}
	sentinel := new(collections) // the next collection frees it
	runtime.AddCleanup(sentinel, func(c *collections) { c.spare() }, c)
}

// percentOf is GOGC for so many bytes that are in use.
func percentOf(live uint64) int {
	const most = 1000
	percent := most
	if live > 0 {
		percent = int(min(most, minHeap*100/live))
	}
	return max(100, (percent-100)/steps*steps)
}
