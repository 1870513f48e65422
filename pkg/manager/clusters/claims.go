package clusters

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// claims say which cluster is whose: one cluster under two names would have its mirrors seen twice,
// and taken for strays of each other.
type claims struct {
	mu    sync.Mutex
	owner map[types.UID]string
}

func newClaims() *claims { return &claims{owner: map[types.UID]string{}} }

// take claims a cluster for a worker, and answers with whose it is.
func (c *claims) take(uid types.UID, worker string) (owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, taken := c.owner[uid]; taken {
		return owner
	}
	c.owner[uid] = worker
	return worker
}

// release gives up what a worker has claimed.
func (c *claims) release(worker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, owner := range c.owner {
		if owner == worker {
			delete(c.owner, uid)
		}
	}
}
