package kueue

import (
	"sync"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/group"
)

// groupPause is the time in which several changes of the Workloads of one JobSet count as one.
const groupPause = time.Second

// groupChanges puts changes together that concern all Jobs of a JobSet, of which there may be
// 10,000, as may be of the Workloads that a tenant makes for it, and deletes all at once.
type groupChanges struct {
	mu sync.Mutex
	// seen has the groups that have changed a moment ago, and whether they have again since then.
	seen map[group.ID]bool
}

// add calls act at once, or, if the group has changed a moment ago, later and for all changes until
// then.
func (c *groupChanges) add(id group.ID, act func()) {
	c.mu.Lock()
	_, soon := c.seen[id]
	if c.seen == nil {
		c.seen = map[group.ID]bool{}
	}
	c.seen[id] = soon
	c.mu.Unlock()
	if soon {
		return
	}
	act()
	time.AfterFunc(groupPause, func() {
		if c.over(id) {
			c.add(id, act)
		}
	})
}

// over reports whether a group has changed again.
func (c *groupChanges) over(id group.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer delete(c.seen, id)
	return c.seen[id]
}
