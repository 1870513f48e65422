package shards

import "testing"

func five(elastic int, speeds []float64) []simSpec {
	var all []simSpec
	for i, speed := range speeds {
		all = append(all, simSpec{slots: 100, speed: speed, elastic: i < elastic})
	}
	return all
}

// A Job of 10,000 completions over five workers of 100 slots, against one cluster that has all the
// slots, and loses and gets them at the same times. Of an elastic Job's makespan at most 1.15 times
// that of the one cluster is allowed.
func TestSimulation(t *testing.T) {
	even, uneven := []float64{1, 1, 1, 1, 1}, []float64{1.2, 0.8, 1, 1.5, 0.6}
	for _, row := range []struct {
		name           string
		elastic        int
		speeds         []float64
		mean           float64
		longTail, loss bool
		indexed        bool
		atMost         float64
	}{
		{"elastic", 5, even, 10, false, false, true, 1.05},
		{"elastic, loss", 5, even, 10, false, true, true, 1.05},
		{"elastic, uneven, loss", 5, uneven, 10, false, true, true, 1.05},
		{"elastic, uneven, long tail, loss", 5, uneven, 10, true, true, true, 1.15},
		{"elastic, uneven, long tail, loss, short Pods", 5, uneven, 2, true, true, true, 1.15},
		{"elastic, uneven, loss, long Pods", 5, uneven, 60, false, true, true, 1.05},
		{"mixed", 2, uneven, 10, false, false, true, 1.15},
		{"mixed, loss", 2, uneven, 10, false, true, true, 1.15},
		{"mixed, long tail, loss", 2, uneven, 10, true, true, true, 1.30},
		{"fixed", 0, even, 10, false, false, true, 1.15},
		{"fixed, uneven", 0, uneven, 10, false, false, true, 1.20},
		{"fixed, uneven, loss", 0, uneven, 10, false, true, true, 1.30},
		{"fixed, uneven, long tail, loss", 0, uneven, 10, true, true, true, 1.65},
		{"without indexes, uneven", 0, uneven, 10, false, false, false, 1.20},
		{"without indexes, uneven, loss", 0, uneven, 10, false, true, false, 1.30},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scenario{
				completions: 10_000, parallelism: 500, limit: NoLimit, workers: five(row.elastic, row.speeds),
				mean: row.mean, exponential: row.longTail, seed: 1,
			}
			if row.loss {
				s.workers[1].lost, s.workers[3].drained = 6*row.mean, 10*row.mean
			}
			one, sim := s.oneCluster(), simulate(t, s, row.indexed)
			ratio := sim.now / one
			t.Logf("%.2f times: %.0f s instead of %.0f s; %d placements, %d changes of mirrors, %d mirrors, %d bytes at most",
				ratio, sim.now, one, sim.hubWrites, sim.mirrorWrites, sim.created, sim.longest)
			if ratio > row.atMost {
				t.Errorf("it takes %.2f times as long as in one cluster", ratio)
			}
			if writes := sim.hubWrites + 2*sim.mirrorWrites + 2*sim.created; writes > 30*s.completions/1000 {
				t.Errorf("%d writes", writes)
			}
		})
	}
}

// Half of the room is there when the Job begins: the rest of the Job waits for the other half.
func TestSimulationOfWorkersThatJoin(t *testing.T) {
	for _, elastic := range []int{5, 0} {
		s := scenario{completions: 10_000, parallelism: 500, limit: NoLimit, workers: five(elastic, []float64{1, 1, 1, 1, 1}), mean: 10, seed: 1}
		s.workers[3].joins, s.workers[4].joins = 40, 80
		one, sim := s.oneCluster(), simulate(t, s, true)
		if ratio := sim.now / one; ratio > 1.25 {
			t.Errorf("%d elastic: it takes %.2f times as long as in one cluster", elastic, ratio)
		} else {
			t.Logf("%d elastic: %.2f times, %d placements, %d mirrors", elastic, ratio, sim.hubWrites, sim.created)
		}
	}
}

// Where there is room elsewhere, what is lost or drained goes on there: the Job needs little longer
// than in one cluster that loses nothing.
func TestSimulationOfLossWithRoomElsewhere(t *testing.T) {
	even := []float64{1, 1, 1, 1, 1}
	for _, row := range []struct {
		elastic int
		atMost  float64
	}{{5, 1.10}, {0, 1.30}} {
		s := scenario{completions: 10_000, parallelism: 300, limit: NoLimit, workers: five(row.elastic, even), mean: 10, seed: 1}
		whole := s
		whole.workers = five(row.elastic, even[:3])
		s.workers[0].lost, s.workers[1].drained = 60, 150
		one, sim := whole.oneCluster(), simulate(t, s, true)
		t.Logf("%d elastic: %.2f times, %d placements, %d mirrors", row.elastic, sim.now/one, sim.hubWrites, sim.created)
		if sim.now/one > row.atMost {
			t.Errorf("%d elastic: it takes %.2f times as long as in one cluster", row.elastic, sim.now/one)
		}
	}
}

// Two workers have very different room, and both are busy when one of them has ended its portion:
// what the other one will need is left to it. The Job needs little longer than in one cluster.
func TestSimulationOfTwoBusyWorkers(t *testing.T) {
	for _, slots := range [][2]int{{1, 2}, {1, 5}, {2, 20}, {1, 20}, {1, 50}, {30, 50}} {
		for _, indexed := range []bool{true, false} {
			s := scenario{completions: 1000, parallelism: slots[0] + slots[1], limit: 2, mean: 10, seed: 1}
			for _, n := range slots {
				s.workers = append(s.workers, simSpec{slots: n, speed: 1})
			}
			one, sim := s.oneCluster(), simulate(t, s, indexed)
			if ratio := sim.now / one; ratio > 1.25 {
				t.Errorf("%v slots, indexed: %t: %.2f times, %d placements, %d mirrors", slots, indexed, ratio, sim.hubWrites, sim.created)
			}
		}
	}
}

// The annotations stay short, however often workers come and go.
func TestSimulationOfChurn(t *testing.T) {
	for _, elastic := range []int{5, 0} {
		s := scenario{completions: 100_000, parallelism: 500, limit: NoLimit, workers: five(elastic, []float64{1.2, 0.8, 1, 1.5, 0.6}), mean: 10, exponential: true, seed: 1, churn: 25}
		sim := simulate(t, s, true)
		t.Logf("%d elastic: %.0f s, %d placements, %d changes of mirrors, %d mirrors, %d bytes at most",
			elastic, sim.now, sim.hubWrites, sim.mirrorWrites, sim.created, sim.longest)
		if sim.longest > 20_000 {
			t.Errorf("%d elastic: the annotation has %d bytes", elastic, sim.longest)
		}
	}
}
