package measure

import (
	"math"
	"time"
)

// Sample is a value at a time.
type Sample struct {
	At    time.Time
	Value float64
}

// Trend is how fast a value grows.
type Trend struct {
	// Mean is the value's, PerHour how much it grows, Noise two standard errors of that: a growth of
	// less can't be told from none.
	Mean, PerHour, Noise float64
}

// TrendOf is the trend that several series have in common, by least squares: each has a level of
// its own, such as those of several processes.
func TrendOf(series ...[]Sample) (t Trend) {
	var n, lines int
	var xx, xy, yy, sum float64
	for _, samples := range series {
		if len(samples) == 0 {
			continue
		}
		lines++
		n += len(samples)
		x, y := means(samples)
		sum += y * float64(len(samples))
		for _, s := range samples {
			dx, dy := s.At.Sub(samples[0].At).Hours()-x, s.Value-y
			xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
		}
	}
	free := n - lines - 1
	if free <= 0 || xx == 0 {
		return Trend{Noise: math.Inf(1)}
	}
	t.Mean, t.PerHour = sum/float64(n), xy/xx
	t.Noise = 2 * math.Sqrt(max(yy-t.PerHour*xy, 0)/float64(free)/xx)
	return t
}

func means(samples []Sample) (hours, value float64) {
	for _, s := range samples {
		hours += s.At.Sub(samples[0].At).Hours()
		value += s.Value
	}
	return hours / float64(len(samples)), value / float64(len(samples))
}
