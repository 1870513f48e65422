package bench

import (
	"errors"
	"time"
)

// SoakOptions choose what a steady load is like.
type SoakOptions struct {
	// Common has 2 workers by default.
	Common
	// Duration is how long Jobs are submitted. Default 20 m.
	Duration time.Duration
	// Rate is how many in a second. Default: four fifths of what the machine does while AtATime Jobs
	// are under way, 100 by default, for the time of a Trial, 3 m by default.
	Rate    float64
	AtATime int
	Trial   time.Duration
	// Leaders is how long each manager leads, and Rotations the time from one change of a worker's
	// credentials to the next. Defaults 5 m and 1 m.
	Leaders, Rotations time.Duration
	// Samples is the time from one sample of the leader's memory to the next; the first is taken when
	// it has led so long. Defaults 5 s and 45 s.
	Samples, Settle time.Duration
	// TTL is how long finished Jobs are kept. Default 20 s.
	TTL time.Duration
	// Manager is the program to measure. Empty: it's built from the source around.
	Manager string
}

// DefaultSoakOptions returns the defaults.
func DefaultSoakOptions() SoakOptions {
	return SoakOptions{
		Duration: 20 * time.Minute, AtATime: 100, Trial: 3 * time.Minute, Leaders: 5 * time.Minute, Rotations: time.Minute,
		Samples: 5 * time.Second, Settle: 45 * time.Second, TTL: 20 * time.Second, Common: common(2),
	}
}

// Validate reports all that can't be used.
func (o *SoakOptions) Validate() error {
	var p problems
	for name, d := range map[string]time.Duration{
		"duration": o.Duration, "trial": o.Trial, "leaders": o.Leaders, "rotations": o.Rotations, "samples": o.Samples, "ttl": o.TTL,
	} {
		p.refuse(d < time.Second, "%s: must be at least 1s, but is %s", name, d)
	}
	p.refuse(o.Rate < 0 || o.Rate > 1000, "rate: must be between 0 and 1000, but is %g", o.Rate)
	p.atLeast("at-a-time", o.AtATime, 1)
	p.atLeast("workers", o.Workers, 1)
	p.refuse(o.Settle < 0, "settle: must not be negative, but is %s", o.Settle)
	return errors.Join(p...)
}
