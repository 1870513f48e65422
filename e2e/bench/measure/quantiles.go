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
	rank := func(percent int) time.Duration {
		return sorted[max((len(sorted)*percent+99)/100, 1)-1]
	}
	return Quantiles{Count: len(sorted), P50: rank(50), P90: rank(90), P99: rank(99), Max: rank(100)}
}
