package shards

import (
	"math"
	"math/rand/v2"
)

// scenario is a Job and its workers.
type scenario struct {
	completions, parallelism, limit int
	workers                         []simSpec
	// exponential: the durations of Pods have a long tail; else they vary by half.
	exponential bool
	mean        float64
	seed        uint64
	// churn is the time between two drains, of a random worker each, which comes back at once.
	churn float64
}

type simSpec struct {
	slots   int
	speed   float64
	elastic bool
	// joins, lost and drained say when.
	joins, lost, drained float64
}

// durations are those of each index's Pod on a worker of speed 1.
func (s scenario) durations() []float64 {
	random := rand.New(rand.NewPCG(s.seed, 1))
	all := make([]float64, s.completions)
	for i := range all {
		all[i] = s.mean * (0.5 + random.Float64())
		if s.exponential {
			all[i] = s.mean * min(random.ExpFloat64(), 5)
		}
	}
	return all
}

// oneCluster is the makespan of one cluster with all the slots, which are lost and drained at the
// same times.
func (s scenario) oneCluster() float64 {
	pods := s.durations()
	var queue []int
	for i := range pods {
		queue = append(queue, i)
	}
	type slot struct{ free, ends, speed float64 }
	var slots []slot
	for _, w := range s.workers {
		ends := math.Inf(1)
		if w.lost > 0 {
			ends = w.lost
		}
		if w.drained > 0 {
			ends = w.drained
		}
		for range w.slots {
			slots = append(slots, slot{simCreate + w.joins, ends, w.speed})
		}
	}
	last := 0.0
	for len(queue) > 0 {
		best := 0
		for i := range slots {
			if slots[i].free < slots[best].free {
				best = i
			}
		}
		pick := &slots[best]
		end := pick.free + pods[queue[0]]/pick.speed
		if end > pick.ends {
			pick.free = math.Inf(1)
			continue
		}
		pick.free = end
		queue, last = queue[1:], max(last, end)
	}
	return last
}
