package measure

import (
	"slices"
	"time"
)

// Quantiles sum up a number of durations.
type Quantiles struct {
	Count         int
	P50, P90, P99 time.Duration
	Max           time.Duration
}

// QuantilesOf sums up durations by the nearest-rank method: each quantile is one of them.
func QuantilesOf(durations []time.Duration) Quantiles {
	if len(durations) == 0 {
		return Quantiles{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	return Quantiles{Count: len(sorted), P50: rank(sorted, 50), P90: rank(sorted, 90), P99: rank(sorted, 99), Max: rank(sorted, 100)}
}

// rank is the value below or at which so many percent are.
func rank[T any](sorted []T, percent int) T { return sorted[max((len(sorted)*percent+99)/100, 1)-1] }
