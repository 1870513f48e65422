package inject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// Log receives what becomes of faults. Its methods may be called by several goroutines.
type Log interface {
	Begin(f schedule.Fault)
	End(f schedule.Fault)
	// Failed: a fault could not begin, or not be healed.
	Failed(f schedule.Fault, err error)
}

// Run carries out the faults at their times from now on, each in a goroutine of its own, and
// returns when all are healed. If ctx ends, those that have begun are healed at once, and no more
// begin.
func Run(ctx context.Context, on *fleet.Fleet, faults []schedule.Fault, log Log) {
	began := time.Now()
	done := make(chan struct{})
	for _, f := range faults {
		go func() {
			defer func() { done <- struct{}{} }()
			if !sleep(ctx, f.At-time.Since(began)) {
				return
			}
			one(ctx, on, f, log)
		}()
	}
	for range faults {
		<-done
	}
}

// one carries out one fault.
func one(ctx context.Context, on *fleet.Fleet, f schedule.Fault, log Log) {
	log.Begin(f)
	defer log.End(f)
	heal, err := begin(ctx, on, f)
	if err != nil {
		log.Failed(f, err)
	}
	if heal == nil {
		return
	}
	sleep(ctx, f.For)
	if err := heal(); err != nil {
		log.Failed(f, fmt.Errorf("heal: %w", err))
	}
}

func begin(ctx context.Context, on *fleet.Fleet, f schedule.Fault) (heal func() error, err error) {
	start := table[f.Kind]
	if start == nil {
		return nil, errors.New("not known")
	}
	return start(fault{Fault: f, ctx: ctx, fleet: on})
}

// sleep is false if ctx has ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
