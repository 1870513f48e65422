package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/memstats"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// leaders are two managers, of which one leads. When it has ended, the other one leads, and a new
// one is started to stand by.
type leaders struct {
	options SoakOptions
	product installed
	hub     *site
	changes []leaderChange

	mu      sync.Mutex
	started int
	leading *manager
	standby *manager
	since   time.Time // of which leading leads
	// heap and goroutines are those of each leader.
	heap, goroutines [][]measure.Sample
	// unwritten are the events that leaders had still to write when they ended.
	unwritten int
}

// leftEvents is what a manager says at its end of the events that it couldn't write in time.
var leftEvents = regexp.MustCompile(`events that still wait aren't written.*events"?[:=](\d+)`)

// unwrittenEvents is at most how many events a manager that has ended didn't write: those that
// waited, and the one that it was writing.
func (m *manager) unwrittenEvents() (int, error) {
	text, err := os.ReadFile(m.LogFile())
	if err != nil {
		return 0, err
	}
	said := leftEvents.FindSubmatch(text)
	if said == nil {
		return 1, nil
	}
	n, err := strconv.Atoi(string(said[1]))
	return n + 1, err
}

// leaderChange is from when a leader was told to end until the next one has placed a Job.
type leaderChange struct{ began, ended time.Time }

// affects reports whether the hub was still to show a change of a Job at some time of the leaders'
// change.
func (c leaderChange) affects(d measure.Delay) bool {
	return d.Since.Before(c.ended) && d.Since.Add(d.Took).After(c.began)
}

func startLeaders(ctx context.Context, product installed, f *fleet, o SoakOptions) (_ *leaders, err error) {
	l := &leaders{options: o, product: product, hub: f.hub}
	if l.leading, err = l.start(); err != nil {
		return nil, err
	}
	if err = awaitWorkers(ctx, f); err == nil {
		_, err = l.awaitControl(ctx)
	}
	if err == nil {
		l.standby, err = l.start()
	}
	if err != nil {
		return nil, errors.Join(err, l.stop())
	}
	l.begin()
	return l, nil
}

// start starts one more manager.
func (l *leaders) start() (*manager, error) {
	l.started++
	profiles, err := (&fleet{hub: l.hub}).reserveProfiles()
	if err != nil {
		return nil, err
	}
	return startManager(l.product, profiles, l.options.ManagerFlags)
}

// begin notes that there is another leader.
func (l *leaders) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Now()
	l.heap, l.goroutines = append(l.heap, nil), append(l.goroutines, nil)
}

// change has the leader end.
func (l *leaders) change(ctx context.Context, n int) error {
	l.mu.Lock()
	old := l.leading
	l.leading, l.standby, l.since = l.standby, nil, time.Now().Add(time.Hour) // it doesn't lead yet
	l.mu.Unlock()
	l.options.Progress("leader %d ends", n+1)
	began, stopped := time.Now(), make(chan error, 1)
	go func() { stopped <- old.stop() }()
	ended, err := l.awaitControl(ctx)
	c := leaderChange{began, ended}
	if err := errors.Join(err, <-stopped); err != nil {
		return err
	}
	dropped, err := old.unwrittenEvents()
	if err != nil {
		return err
	}
	l.unwritten += dropped
	l.changes = append(l.changes, c)
	l.begin()
	l.options.Progress("the next one has placed a Job after %s", c.ended.Sub(began).Round(time.Millisecond))
	l.standby, err = l.start()
	return err
}

// awaitControl returns when a Job that is submitted now was seen to be placed, and removes it.
func (l *leaders) awaitControl(ctx context.Context) (at time.Time, err error) {
	name, placed := fmt.Sprintf("control-%d", l.started), make(chan time.Time, 1)
	saw := func(object any) {
		job, is := object.(*batchv1.Job)
		if !is || job.Name != name || hubstate.Get(job, hubstate.Cluster) == "" {
			return
		}
		select {
		case placed <- time.Now():
		default: // it was seen before
		}
	}
	stop, err := measure.WatchJobs(ctx, l.hub.client, trialNamespace, nil, cache.ResourceEventHandlerFuncs{
		AddFunc: saw, UpdateFunc: func(_, object any) { saw(object) },
	})
	if err != nil {
		return at, err
	}
	defer stop()
	if _, err := l.hub.create(ctx, 1, trialNamespace, []string{name}, dispatched); err != nil {
		return at, err
	}
	select {
	case at = <-placed:
		return at, l.hub.remove(ctx, 1, trialNamespace, []string{name})
	case <-ctx.Done():
		return at, context.Cause(ctx)
	}
}

// longest is how long the longest change took.
func (l *leaders) longest() (longest time.Duration) {
	for _, c := range l.changes {
		longest = max(longest, c.ended.Sub(c.began))
	}
	return longest
}

// sample takes samples of the leader's memory, once it has led for a while.
func (l *leaders) sample(ctx context.Context) error {
	return every(ctx, l.options.Samples, func(ctx context.Context, _ int) error {
		l.mu.Lock()
		defer l.mu.Unlock() // it isn't ended meanwhile
		if time.Since(l.since) < l.options.Settle {
			return nil
		}
		stats, err := memstats.Read(ctx, l.leading.profiles)
		if err != nil {
			return err
		}
		goroutines, err := memstats.Goroutines(ctx, l.leading.profiles)
		if err != nil {
			return err
		}
		last, now := len(l.heap)-1, time.Now()
		l.heap[last] = append(l.heap[last], measure.Sample{At: now, Value: float64(stats["HeapAlloc"])})
		l.goroutines[last] = append(l.goroutines[last], measure.Sample{At: now, Value: float64(goroutines)})
		return nil
	})
}

func (l *leaders) stop() (err error) {
	for _, m := range []*manager{l.leading, l.standby} {
		if m != nil {
			err = errors.Join(err, m.stop())
		}
	}
	return err
}
