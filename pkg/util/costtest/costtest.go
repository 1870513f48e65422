// Package costtest finds what costs far more than it should. It counts bytes of memory, and no
// time, so that the same costs the same on every machine.
package costtest

import (
	"runtime"
	"strings"
	"testing"
)

// Check fuzzes what reads foreign text. The text is a begin, a part that is repeated until the text
// has about a size, and an end: a few bytes stand for what takes long only when it's large. A text
// may cost at most a number of bytes for each of the size.
func Check(f *testing.F, size, perByte int, read func(text string)) {
	f.Helper()
	f.Fuzz(func(t *testing.T, begin, part, end string) {
		text := textOf(begin, part, end, size)
		most := uint64(size) * uint64(perByte) //nolint:gosec // both are positive
		// What is made once for all texts is there the second time.
		call := func() { read(text) }
		if Of(call) > most {
			if cost := Of(call); cost > most {
				t.Errorf("%d bytes, %.40q, %.40q again and again, %.40q, cost %d KiB of memory, and not %d KiB at most", len(text), begin, part, end, cost>>10, most>>10)
			}
		}
	})
}

func textOf(begin, part, end string, size int) string {
	begin, end = begin[:min(len(begin), size)], end[:min(len(end), size)]
	if left := size - len(begin) - len(end); len(part) > 0 && left > 0 {
		return begin + strings.Repeat(part, left/len(part)) + end
	}
	return begin + end
}

// Of is how many bytes a call allocates, and how much a stack grows.
func Of(call func()) uint64 {
	cost := make(chan uint64)
	go func() { // on a stack that hasn't grown before
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call()
		runtime.ReadMemStats(&after)
		cost <- after.TotalAlloc - before.TotalAlloc + max(after.StackInuse, before.StackInuse) - before.StackInuse
	}()
	return <-cost
}

// Heap is how many bytes live objects take.
func Heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 2^63 bytes
}
