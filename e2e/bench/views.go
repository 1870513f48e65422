package bench

import (
	"context"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

// views are what is seen of one namespace's Jobs on the hub and in the workers.
type views struct {
	hub     *measure.Timeline
	workers []*measure.Timeline
	stops   []func()
}

func watchAll(ctx context.Context, f *fleet, namespace string) (*views, error) {
	v := &views{}
	for _, s := range f.all() {
		t, stop, err := measure.Watch(ctx, s.client, namespace)
		if err != nil {
			v.stop()
			return nil, err
		}
		v.stops = append(v.stops, stop)
		if s == f.hub {
			v.hub = t
		} else {
			v.workers = append(v.workers, t)
		}
	}
	return v, nil
}

// awaitGone returns when no Job of the namespace is left, in any cluster.
func (v *views) awaitGone(ctx context.Context) error {
	for _, jobs := range append([]*measure.Timeline{v.hub}, v.workers...) {
		if err := jobs.AwaitGone(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (v *views) stop() {
	for _, stop := range v.stops {
		stop()
	}
}

// sinceSent is how long each Job took from its submission to a stage of its mirror.
func (v *views) sinceSent(sent map[string]time.Time, stage measure.Stage) []time.Duration {
	var all []time.Duration
	for _, w := range v.workers {
		all = append(all, measure.SinceSent(sent, w, stage)...)
	}
	return all
}

// latencies are those of Jobs that were sent one after another, or at once.
func (v *views) latencies(sent map[string]time.Time) report.Latencies {
	return report.Latencies{Mirror: measure.QuantilesOf(v.sinceSent(sent, measure.Created)), Lag: measure.QuantilesOf(v.lag())}
}

// lag is how long each change of a mirror's status took to be shown on the hub.
func (v *views) lag() []time.Duration {
	var all []time.Duration
	for _, d := range v.delays() {
		all = append(all, d.Took)
	}
	return all
}

// delays are the same, with the times of the changes.
func (v *views) delays() []measure.Delay {
	var all []measure.Delay
	for _, w := range v.workers {
		all = append(all, measure.Lag(w, v.hub)...)
	}
	return all
}
