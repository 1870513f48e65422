package plan

import (
	"time"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// indexDelay is how long the next Pod of an index has to wait: with backoffLimitPerIndex each index
// has a back-off of its own, which its last failed Pod determines.
func (f *facts) indexDelay(index int) time.Duration {
	last := f.indexes.awaiting[index]
	if last == nil {
		return 0
	}
	b := Backoff{Failures: allFailures(last.Pod) + 1, Last: endTime(last.Pod)}
	return b.remaining(f.now, f.options)
}

// readyIndexes are those of the given indexes whose back-off has passed, and when the first of the
// others will be.
func (f *facts) readyIndexes(all []int) (ready []int, first time.Duration) {
	for _, index := range all {
		if delay := f.indexDelay(index); delay > 0 {
			first = wake.Soonest(first, delay)
			continue
		}
		ready = append(ready, index)
	}
	return ready, first
}
