package bench

import (
	"context"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/memstats"
)

// turns are the programs of one round, in order: whichever is first this time is second the next.
func (r *run) turns(product installed, round int) []turn {
	head := turn{product: product}
	if r.options.Against == "" {
		return []turn{head}
	}
	base := turn{product: product, isBase: true}
	base.product.program = r.options.Against
	if round%2 == 0 {
		return []turn{base, head}
	}
	return []turn{head, base}
}

// turn is one program in one round.
type turn struct {
	product installed
	isBase  bool
}

// account takes what one manager used in its round, before it ends.
func (r *run) account(ctx context.Context) error {
	if r.options.Against == "" {
		return nil
	}
	stats, err := memstats.Read(ctx, r.manager.profiles)
	if err != nil {
		return err
	}
	usage, err := r.manager.Usage()
	if err != nil {
		return err
	}
	r.round.Used = report.Used{
		Allocations: stats["Mallocs"], Allocated: stats["TotalAlloc"], Heap: stats["HeapAlloc"], PeakMemory: usage.PeakRSS, CPU: usage.CPU,
	}
	return nil
}

// countRound counts the requests of one round.
func (r *run) countRound(since time.Time) error {
	all, err := requestsOf(managerUser, r.fleet.all()...)
	if err != nil {
		return err
	}
	for _, c := range audit.Tally("", audit.Select(all, audit.In(floodNamespace), audit.Between(since, time.Now()))) {
		if c.IsEvent() {
			r.round.Used.Events += c.Requests
		} else {
			r.round.Used.Requests += c.Requests
		}
	}
	return nil
}
