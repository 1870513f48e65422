package process

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is the largest live heap for which GOGC stays at 100, Go's default: such a heap may
// double between two collections.
const smallHeap = 96 << 20

// leastGrowth is the least GOGC, in percent.
const leastGrowth = 40

// paceCollector sets GOGC after each garbage collection, unless the environment does. What a large
// heap may grow by is proportional to the square root of what is live, not to all of it: that divides
// memory and CPU best. See Kirisame et al., Optimal Heap Limits for Reducing Browser Memory Use,
// OOPSLA 2022. GOMEMLIMIT still bounds the heap.
func paceCollector() {
	if os.Getenv("GOGC") == "" {
		afterEachCollection(func() { debug.SetGCPercent(growth(liveHeap())) })
	}
}

// growth is the GOGC for a live heap.
func growth(live uint64) int {
	return max(leastGrowth, int(100*math.Sqrt(smallHeap/float64(max(live, smallHeap)))))
}

// liveHeap is what the last collection found live, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterEachCollection calls a function after each collection: each finds an object that nobody
// holds.
func afterEachCollection(call func()) {
	type unheld struct{ self *unheld }
	runtime.AddCleanup(&unheld{}, func(struct{}) {
		call()
		afterEachCollection(call)
	}, struct{}{})
}
