package bench

import (
	"errors"
	"regexp"
	"time"
)

// ScaleOptions choose what is measured of many workers.
type ScaleOptions struct {
	// Common has 100 simulated workers by default.
	Common
	// Jobs run all along, on all workers alike. Default 50,000. Few of them are there when the
	// manager's memory is measured for the first time. Default 5,000.
	Jobs, Few int
	// Finished are besides. Default 20,000.
	Finished int
	// Lost is how many workers are lost at once, after so long without an answer. Defaults 10 and 20
	// s.
	Lost      int
	LostAfter time.Duration
	// Handovers are how often the leader ends. Default 1.
	Handovers int
	// Singles are submitted at a time of their own, with and without a slow worker that answers
	// after Slow. Defaults 200 and 5 s.
	Singles int
	Slow    time.Duration
	// MemoryLimit is the manager's GOMEMLIMIT, such as 450MiB, and not this program's. Empty: none.
	MemoryLimit string
	// TimeLimit is how long a run may take. What was measured until then is printed. Default 25
	// minutes.
	TimeLimit time.Duration
	// Profiles is the directory for heap profiles of the manager after each start. Empty: none are
	// taken.
	Profiles string
	// Manager is the program to measure. Empty: it's built from the source around.
	Manager string
}

// DefaultScaleOptions returns the defaults.
func DefaultScaleOptions() ScaleOptions {
	return ScaleOptions{
		Common: common(100), Jobs: 50_000, Few: 5_000, Finished: 20_000, Lost: 10, LostAfter: 20 * time.Second,
		Handovers: 1, Singles: 200, Slow: 5 * time.Second, TimeLimit: 25 * time.Minute,
	}
}

// memoryLimits are values of GOMEMLIMIT.
var memoryLimits = regexp.MustCompile(`^[0-9]+([KMGT]iB|B)?$`)

// Validate reports all that can't be used.
func (o *ScaleOptions) Validate() error {
	var p problems
	p.atLeast("workers", o.Workers, 2)
	p.atLeast("singles", o.Singles, 1)
	p.atLeast("handovers", o.Handovers, 1)
	p.refuse(o.Few < o.Workers || o.Few > o.Jobs, "few: must be between the workers (%d) and the Jobs (%d), not %d", o.Workers, o.Jobs, o.Few)
	p.refuse(o.Finished < 0, "finished: must not be negative, but is %d", o.Finished)
	p.refuse(o.Lost < 0 || o.Lost > o.Workers/2, "lost: must be between 0 and half of the workers, not %d", o.Lost)
	p.refuse(o.LostAfter < time.Second, "lost-after: must be at least 1s, but is %s", o.LostAfter)
	p.refuse(o.Slow < 0, "slow: must not be negative, but is %s", o.Slow)
	p.refuse(o.MemoryLimit != "" && !memoryLimits.MatchString(o.MemoryLimit),
		"memory-limit: must be a number of bytes, or of KiB, MiB or GiB, such as 450MiB, not %q", o.MemoryLimit)
	p.refuse(o.TimeLimit <= 0, "time-limit: must be positive, but is %s", o.TimeLimit)
	return errors.Join(p...)
}

// room is how many Pods fit in each worker: when some are lost, the others have a tenth more than
// it takes.
func (o *ScaleOptions) room() int {
	return divideUp(o.Jobs*11, (o.Workers-o.Lost)*10) + divideUp(2*o.Singles, o.Workers) + 8
}
