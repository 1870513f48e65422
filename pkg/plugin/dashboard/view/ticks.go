package view

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// steps between ticks, of which the smallest is taken that needs no more than maxTicks.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour,
}

const maxTicks = 6

// ticks mark the time since the Job was created.
func ticks(whole time.Duration) []Tick {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if whole/s < maxTicks {
			step = s
			break
		}
	}
	all := []Tick{{0, "0"}}
	const nearTheEdge = 96
	for at := step; at <= whole && len(all) < maxTicks; at += step {
		if left := 100 * float64(at) / float64(whole); left < nearTheEdge {
			all = append(all, Tick{left, duration.HumanDuration(at)})
		}
	}
	return all
}
