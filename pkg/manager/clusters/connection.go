package clusters

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNotConnected is returned by a Worker's client, without a request being sent, while the worker
// doesn't answer or isn't to be used. Wait for Listener.WorkerChanged.
var ErrNotConnected = errors.New("no connection to the worker cluster")

// slowAfter is how long a request may go without an answer before the worker is probed, so that a
// black hole is found before the next probe is due.
const slowAfter = 2 * time.Second

// connection carries all requests to one worker. Clients and informers are built on it once; the
// transport under it can be replaced.
type connection struct {
	gate         *gate
	meter        *meter
	now          func() time.Time
	clock        workerClock // the worker's
	requestProbe func()      // never blocks
	listTimeout  time.Duration

	transport atomic.Pointer[Transport]
	// broken is the last bound that an answer broke, until the supervisor has seen it.
	broken atomic.Pointer[BoundError]
}

// requestClass says what happens to a request while the gate is shut.
type requestClass int

const (
	// jobRequest fails: reads and writes on behalf of a Job.
	jobRequest requestClass = iota
	// informerRequest waits: lists and watches.
	informerRequest
	// probeRequest passes: it finds out whether the gate can be opened.
	probeRequest
)

func newConnection(meter *meter, now func() time.Time, requestProbe func(), listTimeout time.Duration) *connection {
	return &connection{gate: newGate(), meter: meter, now: now, requestProbe: requestProbe, listTimeout: listTimeout}
}

// replace changes the transport. Requests on the old one fail.
func (c *connection) replace(next *Transport) {
	if old := c.transport.Swap(next); old != nil {
		old.revoke()
	}
}

// disconnect shuts the gate and closes all TCP connections, also those of watches.
func (c *connection) disconnect() {
	c.gate.set(false)
	if t := c.transport.Load(); t != nil {
		t.closeAll()
	}
}

// client has no timeout of its own: the requests' contexts have. A redirect is an answer like any
// other: a worker sends the manager nowhere.
func (c *connection) client(class requestClass) *http.Client {
	return &http.Client{
		Transport: roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			return c.roundTrip(class, req)
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (c *connection) roundTrip(class requestClass, req *http.Request) (*http.Response, error) {
	t, err := c.admit(req.Context(), class)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as RoundTripper demands; nothing was sent
		}
		return nil, err
	}
	if class == jobRequest {
		slow := time.AfterFunc(slowAfter, c.requestProbe)
		defer slow.Stop()
	}
	before := c.now()
	resp, err := t.RoundTrip(req)
	c.meter.request(req, resp, err)
	if err == nil {
		c.clock.see(resp, before, c.now())
		bound(class, resp, c.breaks)
		return resp, nil
	}
	var broken *BoundError
	switch {
	case errors.As(err, &broken):
		c.breaks(broken)
	case class != probeRequest && !errors.Is(req.Context().Err(), context.Canceled):
		c.requestProbe()
	}
	return nil, err
}

// breaks has the supervisor look at an answer that broke a bound.
func (c *connection) breaks(err *BoundError) {
	c.broken.Store(err)
	c.requestProbe()
}

func (c *connection) admit(ctx context.Context, class requestClass) (*Transport, error) {
	switch class {
	case jobRequest:
		if !c.gate.isOpen() {
			return nil, ErrNotConnected
		}
	case informerRequest:
		if err := c.gate.wait(ctx); err != nil {
			return nil, err
		}
	case probeRequest:
	}
	if t := c.transport.Load(); t != nil {
		return t, nil
	}
	return nil, ErrNotConnected
}

// gate is open while a worker answers. Watches wait at it rather than fail, so that no backoff of
// theirs outlasts the loss; requests on behalf of Jobs fail at once.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	open   bool
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && !g.open:
		close(g.opened)
	case !open && g.open:
		g.opened = make(chan struct{})
	}
	g.open = open
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// wait returns when the gate is open, or with the context's error.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
