package clusters

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// ErrNotConnected is returned by a Worker's client, without a request being sent, while the worker
// doesn't answer or isn't to be used. Wait for Listener.WorkerChanged.
var ErrNotConnected = errors.New("no connection to the worker cluster")

// slowAfter is how long a request may go without an answer before the worker is probed: a black
// hole is found without waiting for the next probe.
const slowAfter = 2 * time.Second

// wire carries all requests to one worker. Clients and caches are built on it once; what it leads
// to, and with which credentials, can be exchanged under them.
type wire struct {
	gate    *gate
	meter   *meter
	suspect func() // asks for a probe now; never blocks

	current atomic.Pointer[route]
}

// lane is how requests of one kind are let through.
type lane int

const (
	// laneCalls fails at a shut gate: reads and writes on behalf of a Job.
	laneCalls lane = iota
	// laneWatches waits at a shut gate: lists and watches of the caches.
	laneWatches
	// laneProbes passes a shut gate: they find out whether it can be opened.
	laneProbes
)

func newWire(meter *meter, suspect func()) *wire {
	return &wire{gate: newGate(), meter: meter, suspect: suspect}
}

// use exchanges the route. Requests under way on the old one are cut off.
func (w *wire) use(next *route) {
	if old := w.current.Swap(next); old != nil {
		old.retire()
	}
}

// drop ends all connections, watches among them.
func (w *wire) drop() {
	if r := w.current.Load(); r != nil {
		r.drop()
	}
}

// on gives the wire as the transport for one kind of requests.
func (w *wire) on(l lane) http.RoundTripper {
	return roundTripperFunc(func(req *http.Request) (*http.Response, error) { return w.roundTrip(l, req) })
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (w *wire) roundTrip(l lane, req *http.Request) (*http.Response, error) {
	r, err := w.admit(l, req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as RoundTripper demands; nothing was sent
		}
		return nil, err
	}
	if l == laneCalls {
		slow := time.AfterFunc(slowAfter, w.suspect)
		defer slow.Stop()
	}
	resp, err := r.RoundTrip(req)
	w.meter.request(req, resp, err)
	if err != nil && l != laneProbes && !errors.Is(req.Context().Err(), context.Canceled) {
		w.suspect()
	}
	return resp, err
}

func (w *wire) admit(l lane, ctx context.Context) (*route, error) {
	switch l {
	case laneCalls:
		if !w.gate.isOpen() {
			return nil, ErrNotConnected
		}
	case laneWatches:
		if err := w.gate.wait(ctx); err != nil {
			return nil, err
		}
	case laneProbes:
	}
	r := w.current.Load()
	if r == nil {
		return nil, ErrNotConnected
	}
	return r, nil
}
