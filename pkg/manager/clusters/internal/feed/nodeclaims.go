package feed

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/placement"
)

// claimWatch watches the nodes that Karpenter is about to make. There is no cache, and no list: of
// those that it can't make, only events tell, and those that have a machine don't come.
type claimWatch struct {
	api      *rest.RESTClient
	selector string
	clock    clock.Clock
	// retry is the pause after a watch that failed, and again after one that ended.
	retry, again time.Duration
	// begun is called when a watch has begun, or couldn't, unless it isn't wanted any more.
	begun func(error)
}

// run passes on NodeClaims until the context ends.
func (c *claimWatch) run(ctx context.Context, worker string, claims chan<- placement.NodeClaim) {
	for ctx.Err() == nil {
		pause := c.retry
		workerpanic.Contain(worker, func() {
			if c.follow(ctx, claims) {
				pause = c.again
			}
		})
		select {
		case <-ctx.Done():
		case <-c.clock.After(pause):
		}
	}
}

// follow passes on the events of one watch. False: it couldn't begin.
func (c *claimWatch) follow(ctx context.Context, claims chan<- placement.NodeClaim) bool {
	body, err := c.api.Get().Resource("nodeclaims").MaxRetries(0).SetHeader("Accept", runtime.ContentTypeJSON).
		Param("watch", "true").Param("labelSelector", c.selector).Stream(ctx)
	if ctx.Err() == nil {
		c.begun(err)
	}
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }() // it was only read
	c.pass(ctx, body, claims)
	return true
}

func (c *claimWatch) pass(ctx context.Context, body io.Reader, claims chan<- placement.NodeClaim) {
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
		if !claim.Read(event.Type, event.Object) {
			continue
		}
		select {
		case claims <- claim:
		case <-ctx.Done():
			return
		}
	}
}
