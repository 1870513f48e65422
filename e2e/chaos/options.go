package chaos

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// Options choose a run.
type Options struct {
	// Seed of the schedule and the stories. Default 1.
	Seed uint64
	// Jobs and Faults are how many there are. Defaults 1000 and 100.
	Jobs, Faults int
	// Span is the time in which faults begin. Default: 9 s for each, and no less than 300 ms for
	// each Job.
	Span time.Duration
	// Settle is how long it may take until the next Job ends, after the last fault. Default 2m.
	Settle time.Duration
	// LostAfter is the managers' worker-lost-timeout. Default 30s.
	LostAfter time.Duration
	// FenceAfter is jobferry-worker's fence-after. Default: a third of LostAfter. With more than
	// LostAfter the fence is useless, and the checker should find so.
	FenceAfter time.Duration
	// Lose says whether some faults outlast LostAfter. Default true.
	Lose bool
	// FaultKinds and JobKinds are the only ones that there are; none: all.
	FaultKinds []schedule.Kind
	JobKinds   []string
	// Samples is a file that receives the managers' metrics; empty: none does.
	Samples string
	// Progress receives a line for what happens.
	Progress func(format string, arguments ...any)
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		Seed: 1, Jobs: 1000, Faults: 100, Settle: 2 * time.Minute, LostAfter: 30 * time.Second, Lose: true,
		Progress: func(string, ...any) {},
	}
}

const (
	perFault = 9 * time.Second
	perJob   = 300 * time.Millisecond
)

// complete checks the options, and fills in what follows from others.
func (o Options) complete() (Options, error) {
	var errs []error
	for name, n := range map[string]int{"jobs": o.Jobs, "faults": o.Faults} {
		if n < 1 {
			errs = append(errs, fmt.Errorf("%s: must be at least 1, not %d", name, n))
		}
	}
	for name, d := range map[string]time.Duration{"settle": o.Settle, "lost-after": o.LostAfter} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be positive, not %s", name, d))
		}
	}
	if o.Span < 0 {
		errs = append(errs, fmt.Errorf("span: must not be negative, but is %s", o.Span))
	}
	if o.Span == 0 {
		o.Span = max(time.Duration(o.Faults)*perFault, time.Duration(o.Jobs)*perJob)
	}
	return o, errors.Join(errs...)
}

// losing is how long a fault lasts that has a worker count as lost, with some time for the Jobs to
// start elsewhere.
func (o Options) losing() time.Duration {
	if !o.Lose {
		return 0
	}
	return o.LostAfter * 7 / 5
}
