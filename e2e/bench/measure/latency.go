package measure

import "time"

// SinceSent returns, for each Job that was sent at a known time, how long it took until it was seen
// at a stage. Jobs that weren't are left out.
func SinceSent(sent map[string]time.Time, t *Timeline, stage Stage) []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []time.Duration
	for job, at := range sent {
		if c := t.jobs[job]; c != nil && c.stage >= stage {
			all = append(all, c.first[stage].Sub(at))
		}
	}
	return all
}

// Delay is how long a stage took to be shown, and since when.
type Delay struct {
	Stage Stage
	Since time.Time
	Took  time.Duration
}

// Lag returns, for each stage after Created at which a Job was seen in the source, how long it took
// until the follower showed as much. What the follower never showed is left out.
//
// Two watches have delays of their own: a follower that seems to be ahead isn't behind.
func Lag(source, follower *Timeline) []Delay {
	source.mu.Lock()
	defer source.mu.Unlock()
	follower.mu.Lock()
	defer follower.mu.Unlock()
	var all []Delay
	for job, s := range source.jobs {
		f := follower.jobs[job]
		if f == nil {
			continue
		}
		for stage := Started; stage <= min(s.stage, f.stage); stage++ {
			if s.seen[stage] {
				all = append(all, Delay{stage, s.first[stage], max(f.first[stage].Sub(s.first[stage]), 0)})
			}
		}
	}
	return all
}
