package measure

import (
	"math"
	"testing"
	"time"
)

// Values go up and down by 1 around a line; each series starts at a level of its own.
func TestTrend(t *testing.T) {
	line := func(level, perHour float64) (samples []Sample) {
		for i := range 100 {
			at := time.Unix(0, 0).Add(time.Duration(i) * time.Minute)
			samples = append(samples, Sample{at, level + perHour*float64(i)/60 + float64(i%2*2-1)})
		}
		return samples
	}
	for name, c := range map[string]struct {
		series [][]Sample
		want   float64
		grows  bool
	}{
		"flat":                       {[][]Sample{line(50, 0)}, 0, false},
		"grows":                      {[][]Sample{line(50, 6)}, 6, true},
		"falls":                      {[][]Sample{line(50, -6)}, -6, false},
		"flat, on two levels":        {[][]Sample{line(50, 0), line(90, 0)}, 0, false},
		"grows, and falls to a base": {[][]Sample{line(50, 6), nil, line(50, 6)}, 6, true},
	} {
		got := TrendOf(c.series...)
		if math.Abs(got.PerHour-c.want) > 0.3 || got.PerHour > got.Noise != c.grows {
			t.Errorf("%s: got %+v, want %g an hour", name, got, c.want)
		}
	}
	if few := TrendOf(line(50, 6)[:2]); !math.IsInf(few.Noise, 1) {
		t.Errorf("two samples have a trend: %+v", few)
	}
}
