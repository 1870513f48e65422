package feed

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/placement"
)

// claimWatch watches the nodes that Karpenter is about to make. There is no cache, and no list: of
// those that it can't make, only events tell, and those that have a machine don't come. It takes in
// each event itself: a large one keeps the memory that it has until the next is read, so nothing
// that takes long may be between the two.
type claimWatch struct {
	api   *rest.RESTClient
	clock clock.Clock
	// retry is the pause after a watch that failed, and again after one that ended.
	retry, again time.Duration
	// begun is called when a watch has begun, or couldn't, unless it isn't wanted any more.
	begun func(error)
	// news has one place, which is taken while there is more in launches than was looked at.
	news chan struct{}

	mu       sync.Mutex // guards launches
	launches placement.Launches
}

// addTo is what is observed, with the machines that don't come for now.
func (c *claimWatch) addTo(o *placement.Observed) *placement.Observed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return o.With(c.launches.Out(c.clock.Now()))
}

// next is when other machines don't come without any news; zero: never.
func (c *claimWatch) next(after time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.launches.Next(after)
}

// see takes in a NodeClaim, and waits for no read.
func (c *claimWatch) see(claim *placement.NodeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.launches.See(claim, c.clock.Now())
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// run takes in NodeClaims until the context ends.
func (c *claimWatch) run(ctx context.Context, worker string) {
	for ctx.Err() == nil {
		pause := c.retry
		workerpanic.Contain(worker, func() {
			if c.follow(ctx) {
				pause = c.again
			}
		})
		select {
		case <-ctx.Done():
		case <-c.clock.After(pause):
		}
	}
}

// follow takes in the events of one watch. False: it couldn't begin.
func (c *claimWatch) follow(ctx context.Context) bool {
	body, err := c.api.Get().Resource("nodeclaims").MaxRetries(0).SetHeader("Accept", runtime.ContentTypeJSON).
		Param("watch", "true").Param("labelSelector", c.launches.Selector()).Stream(ctx)
	if ctx.Err() == nil {
		c.begun(err)
	}
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }() // it was only read
	c.take(body)
	return true
}

func (c *claimWatch) take(body io.Reader) {
	events := json.NewDecoder(body)
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if events.Decode(&event) != nil || event.Type == watch.Error {
			return
		}
		var claim placement.NodeClaim
		if claim.Read(event.Type, event.Object) {
			c.see(&claim)
		}
	}
}
