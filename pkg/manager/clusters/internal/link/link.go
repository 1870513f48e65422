package link

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNotConnected is returned by a Link's client, without a request being sent, while the worker
// doesn't answer or isn't to be used.
var ErrNotConnected = errors.New("no connection to the worker cluster")

// slowAfter is how long a request may go without an answer before the worker is probed, so that a
// black hole is found before the next probe is due.
const slowAfter = 2 * time.Second

// Options of a Link. The times, QPS and Burst are those of clusters.Options.
type Options struct {
	// Worker is the name that the metrics have.
	Worker                      string
	QPS                         float32
	Burst                       int
	DialTimeout, RequestTimeout time.Duration
	ProbeInterval, ProbeTimeout time.Duration
	RetryDelay, MaxBackoff      time.Duration
	Clock                       clock.Clock
	// MayWrite says whether another manager doesn't write to the worker. While it does, requests on
	// behalf of Jobs only read. Nil: it never does.
	MayWrite func() bool
	// Mismatch says why the cluster that answers isn't to be used; an empty reason if it is.
	Mismatch func(cluster types.UID) (reason, message string)
	// Wake has Keep called soon. It must not block.
	Wake func()
}

// Link carries all requests to one worker. Clients and informers are built on it once; the
// Transport under it can be replaced. One goroutine calls Keep, Servers, Open, Observation, Due and
// Close.
type Link struct {
	options Options
	gate    *gate
	meter   *meter
	clock   workerClock
	// probes and revisions are for what a probe reads.
	probes, revisions   *rest.RESTClient
	client, leaseClient client.Client

	// large has one place, for a large answer.
	large *semaphore.Weighted

	transport atomic.Pointer[Transport]
	// broken is the last bound that an answer broke, until Keep has seen it.
	broken         atomic.Pointer[BoundError]
	probeRequested atomic.Bool

	mu     sync.Mutex // guards target
	target *Target

	// dialed is the target that the transport leads to.
	dialed *Target
	// servers counts the servers that targets have led to.
	servers int
	// refusal of that target; nil if there's a transport to try.
	refusal *kubeconfigError
	// last is what the last attempt to connect found, and due when the next one is.
	last        Observation
	due         time.Time
	failures    int
	versionRead time.Time
	quarantine  quarantine
	// revision is the latest resourceVersion that a probe has read of the cluster. restored says that
	// the next was an earlier one; empty: it wasn't.
	revision, restored string
}

// New makes a Link that leads nowhere yet.
func New(options Options) (*Link, error) {
	if options.MayWrite == nil {
		options.MayWrite = func() bool { return true }
	}
	l := &Link{options: options, gate: newGate(), meter: newMeter(options.Worker), large: semaphore.NewWeighted(1)}
	var err error
	if l.probes, err = l.newREST(corev1.SchemeGroupVersion, probeRequest); err != nil {
		return nil, err
	}
	if l.revisions, err = l.newREST(batchv1.SchemeGroupVersion, probeRequest); err != nil {
		return nil, err
	}
	if l.client, err = l.newClient(jobRequest); err != nil {
		return nil, err
	}
	l.leaseClient, err = l.newClient(probeRequest)
	return l, err
}

// Options are those of New.
func (l *Link) Options() Options { return l.options }

// Client reads and writes in the worker, without a cache.
func (l *Link) Client() client.Client { return l.client }

// LeaseClient is the client for finding out whether the Link may write. It isn't stopped by that.
func (l *Link) LeaseClient() client.Client { return l.leaseClient }

// ClockAhead is how far the hub's clock is ahead of the worker's; zero: no answer has told.
func (l *Link) ClockAhead() time.Duration { return l.clock.ahead() }

// Wait returns when the worker is connected, or with the context's error.
func (l *Link) Wait(ctx context.Context) error { return l.gate.wait(ctx) }

// CountLoss counts one loss of the worker in the metrics.
func (l *Link) CountLoss() { l.meter.losses.Inc() }

// Collect sends the metrics of this Link.
func (l *Link) Collect(ch chan<- prometheus.Metric) { l.meter.collect(ch) }

// Malformed counts an object whose names no API server stores.
func (l *Link) Malformed(resource string) { l.meter.malformed.WithLabelValues(resource).Inc() }

// requestClass says what happens to a request while the gate is shut.
type requestClass int

const (
	// jobRequest fails: reads and writes on behalf of a Job. Writes also fail while another manager
	// may write.
	jobRequest requestClass = iota
	// informerRequest waits: lists and watches.
	informerRequest
	// probeRequest passes: it finds out whether the gate can be opened, and who may write.
	probeRequest
)

// replace changes the transport. Requests on the old one fail.
func (l *Link) replace(next *Transport) {
	if old := l.transport.Swap(next); old != nil {
		old.revoke()
	}
}

// disconnect shuts the gate and closes all TCP connections, also those of watches.
func (l *Link) disconnect() {
	l.gate.set(false)
	if t := l.transport.Load(); t != nil {
		t.closeAll()
	}
}

// Close shuts the gate for good, and ends all requests.
func (l *Link) Close() {
	l.gate.set(false)
	l.replace(nil)
}

// httpClient has no timeout of its own: the requests' contexts have. A redirect is an answer like
// any other: a worker sends the manager nowhere.
func (l *Link) httpClient(class requestClass) *http.Client {
	return &http.Client{
		Transport: roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			return l.roundTrip(class, req)
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (l *Link) roundTrip(class requestClass, req *http.Request) (*http.Response, error) {
	t, err := l.admit(req, class)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as RoundTripper demands; nothing was sent
		}
		return nil, err
	}
	if class == jobRequest {
		slow := time.AfterFunc(slowAfter, l.Probe)
		defer slow.Stop()
	}
	h := l.holdOf(req.Context())
	h.waits()
	before := l.now()
	resp, err := t.RoundTrip(req)
	l.meter.request(req, resp, err)
	if err == nil {
		l.clock.see(resp, before, l.now())
		// Client-go would obey, in silence: who has sent the request records the error, and backs off.
		resp.Header.Del("Retry-After")
		bound(class, resp, h, l.Break)
		return resp, nil
	}
	var broken *BoundError
	switch {
	case errors.As(err, &broken):
		l.Break(broken)
	case class != probeRequest && !errors.Is(req.Context().Err(), context.Canceled):
		l.Probe()
	}
	return nil, err
}

// Break notes that the worker broke a bound: the next Keep begins a quarantine.
func (l *Link) Break(err *BoundError) {
	l.broken.Store(err)
	l.Probe()
}

// Probe has the next Keep probe.
func (l *Link) Probe() {
	l.probeRequested.Store(true)
	l.options.Wake()
}

func (l *Link) admit(req *http.Request, class requestClass) (*Transport, error) {
	switch class {
	case jobRequest:
		if !l.gate.isOpen() || req.Method != http.MethodGet && !l.options.MayWrite() {
			return nil, ErrNotConnected
		}
	case informerRequest:
		if err := l.gate.wait(req.Context()); err != nil {
			return nil, err
		}
	case probeRequest:
	}
	if t := l.transport.Load(); t != nil {
		return t, nil
	}
	return nil, ErrNotConnected
}

func (l *Link) now() time.Time { return l.options.Clock.Now() }
