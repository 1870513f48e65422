package revision

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"
)

// guardEvery is how often a Guard compares the cluster's state with what it was before.
const guardEvery = 10 * time.Second

// Guard ends the process when the cluster's etcd is put back to an earlier state. Its caches show a
// later state then, and their watches go on as if nothing had happened. The next process begins
// with lists. It's a manager.Runnable, also of a standby.
//
// It compares every 10 seconds. A process that stood still meanwhile may act before that: so what
// can't be undone asks Check, or Compare after a write.
type Guard struct {
	live  client.Reader
	clock clock.WithTicker

	mu     sync.Mutex
	latest string
	err    error
	// wentBack is closed when err is set.
	wentBack chan struct{}
}

// NewGuard makes the Guard of a cluster. The reader must be without a cache.
func NewGuard(live client.Reader, clock clock.WithTicker) *Guard {
	return &Guard{live: live, clock: clock, wentBack: make(chan struct{})}
}

// NeedLeaderElection says that a standby ends, too.
func (g *Guard) NeedLeaderElection() bool { return false }

// Start compares until the context ends; its error ends the process.
func (g *Guard) Start(ctx context.Context) error {
	ticker := g.clock.NewTicker(guardEvery)
	defer ticker.Stop()
	for {
		_ = g.Check(ctx) // an error of the read is found by the caches and the leader election, too
		select {
		case <-ctx.Done():
			return nil
		case <-g.wentBack:
			return g.err
		case <-ticker.C():
		}
	}
}

// Saw is told of the resourceVersion of a Job that a watch shows.
func (g *Guard) Saw(version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !ownwrite.NewerVersion(g.latest, version) {
		g.latest = version
	}
}

// Latest is the newest resourceVersion that this process knows; empty: it knows none.
func (g *Guard) Latest() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latest
}

// Check reads the resourceVersion of the cluster's Jobs. It's an error if that can't be read, or is
// older than what this process has seen.
func (g *Guard) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardEvery)
	defer cancel()
	since := g.Latest()
	jobs := &metav1.PartialObjectMetadataList{}
	jobs.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("JobList"))
	now, err := Read(ctx, g.live, jobs)
	if err != nil {
		return err
	}
	return g.Compare(since, now)
}

// Compare returns an error if the resourceVersion of a write, or of a consistent read, is older
// than what was the latest before it began.
func (g *Guard) Compare(since, now string) error {
	if !ownwrite.NewerVersion(since, now) {
		g.Saw(now)
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = fmt.Errorf("the cluster's etcd was put back to an earlier state: its resourceVersion was %s, and is %s; "+
			"this process ends, so that the next one reads everything again", since, now)
		close(g.wentBack)
	}
	return g.err
}
