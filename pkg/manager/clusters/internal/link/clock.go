package link

import (
	"net/http"
	"sync"
	"time"
)

// workerClock knows how far the hub's clock is ahead of a worker's, by the header Date of its
// answers. Each answer says between what it lies; together they say it more exactly than a header's
// whole seconds. An answer that contradicts the ones before starts anew: somebody has set a clock.
type workerClock struct {
	mu          sync.Mutex
	least, most time.Duration
	known       bool
}

// see takes in an answer to a request, with the hub's time before and after.
func (c *workerClock) see(answer *http.Response, before, after time.Time) {
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return
	}
	least, most := before.Sub(date)-time.Second, after.Sub(date)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || least > c.most || most < c.least {
		c.least, c.most, c.known = least, most, true
		return
	}
	c.least, c.most = max(c.least, least), min(c.most, most)
}

// ahead is how far the hub's clock is ahead; zero: no answer has told.
func (c *workerClock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least + (c.most-c.least)/2
}
