package subresources

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet"
	"github.com/jobferry/jobferry/pkg/util/version"
)

// backends are what a handler needs besides options.
type backends struct {
	authenticate userAuthenticator
	authorize    authorizer
	find         *finder
	leader       *leader
	jobs         *dispatchedjobs.Server
}

// handler serves the API, and what package kubelet asks for.
type handler struct {
	backends
	options  Options
	logger   logr.Logger
	metrics  *serverMetrics
	streams  *limiter
	watches  *limiter
	requests *limiter
	// eventLists are those of requests that have events in memory.
	eventLists *limiter
	pace       *pace
	// stopping is cancelled to end all streams.
	stopping context.Context
}

func newHandler(s *server, b backends) *handler {
	return &handler{
		backends: b, options: s.options, logger: s.log, metrics: s.metrics, stopping: s.stopping,
		streams:    newLimiter("streams", s.options.StreamsPerUser, s.options.Streams),
		watches:    newLimiter("watches", s.options.WatchesPerUser, s.options.Watches),
		requests:   newLimiter("requests", requestsPerUser, s.options.Requests),
		eventLists: newLimiter("lists of events", 0, maxEventLists),
		pace:       newPace(clock.RealClock{}, s.options.RequestTimeout),
	}
}

// routes serves the aggregated API.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	for path, content := range documents() {
		mux.Handle(path, h.authenticated(func(w http.ResponseWriter, _ *http.Request, _ user.Info) {
			w.Header().Set(version.Header, version.Get())
			writeJSON(w, http.StatusOK, content)
		}))
	}
	mux.HandleFunc("GET "+peerPath, h.leader.servePeer)
	mux.Handle(pattern, h.authenticated(h.parsed(parseRequest)))
	for _, path := range dispatchedJobsPatterns {
		mux.Handle(path, h.authenticated(h.parsed(parseDispatchedJobs)))
	}
	mux.Handle("/", h.authenticated(func(w http.ResponseWriter, r *http.Request, _ user.Info) { writeError(w, unknownPath(r)) }))
	return mux
}

// authenticated serves only requests for which the hub's front proxy names a user.
func (h *handler) authenticated(next func(http.ResponseWriter, *http.Request, user.Info)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := h.authenticate.authenticate(r)
		if u == nil {
			writeError(w, statusError(http.StatusUnauthorized, "Unauthorized",
				"this API is served through the hub's API server only: ask there for %s", apiRoot))
			return
		}
		next(w, r, u)
	})
}

// parsed serves the requests that a function can parse.
func (h *handler) parsed(parse func(*http.Request, user.Info) (*request, error)) func(http.ResponseWriter, *http.Request, user.Info) {
	return func(w http.ResponseWriter, r *http.Request, u user.Info) {
		began := time.Now()
		req, err := parse(r, u)
		if err != nil {
			writeError(w, err)
			return
		}
		h.respond(w, r, req, began)
	}
}

func (h *handler) respond(w http.ResponseWriter, r *http.Request, req *request, began time.Time) {
	out := &responseWriter{ResponseWriter: w}
	defer func() { h.metrics.observe(req.sub, out.code, time.Since(began)) }()
	if err := h.serve(out, r, req); err != nil {
		h.fail(out, r, req, err)
	}
}

// serve serves a request within the user's rights and the limits. Who has no right takes no place.
func (h *handler) serve(w *responseWriter, r *http.Request, req *request) error {
	name := ""
	if !req.ofNode {
		name = req.user.GetName()
		if err := h.authorized(r.Context(), req); err != nil {
			return err
		}
		if err := req.checkParams(); err != nil {
			return err
		}
	}
	release, err := h.limiter(req.sub).acquire(name, holder(req))
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(onBehalf(r.Context(), req))
	defer cancel()
	if req.sub.stream {
		defer context.AfterFunc(h.stopping, cancel)()
		defer h.metrics.stream(req.sub.name)()
	}
	h.logger.V(1).Info("request", "user", req.user.GetName(), "job", req.key, "subresource", req.sub.name)
	return req.sub.serve(h, w, r.WithContext(ctx), req)
}

// limiter has the places for a kind of requests.
func (h *handler) limiter(s subresource) *limiter {
	switch {
	case s.stream && s.whole:
		return h.watches
	case s.stream:
		return h.streams
	default:
		return h.requests
	}
}

// holder is who gets a fair share of the places.
func holder(req *request) string {
	if req.key.Namespace == "" {
		return "the sum of all namespaces"
	}
	return fmt.Sprintf("namespace %q", req.key.Namespace)
}

func (h *handler) authorized(ctx context.Context, req *request) error {
	ctx, cancel := context.WithTimeout(ctx, h.options.RequestTimeout)
	defer cancel()
	return h.authorize.check(ctx, req)
}

// fail responds with an error. After a response has begun, it breaks the connection instead:
// nothing else shows the client that the response is incomplete.
func (h *handler) fail(w *responseWriter, r *http.Request, req *request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	if w.code == 0 {
		if errors.Is(err, context.Canceled) {
			err = unavailable("this replica of the manager is being shut down: ask again")
		}
		if req.ofNode {
			kubelet.WriteError(w, req.sub.name, err)
			return
		}
		writeError(w, err)
		return
	}
	h.logger.Info("an answer breaks off", "job", req.key, "subresource", req.sub.name, "reason", err.Error())
	panic(http.ErrAbortHandler)
}

// responseWriter records whether, and with which code, a response has begun.
type responseWriter struct {
	http.ResponseWriter
	code int
}

func (w *responseWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(content []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(content)
}

// within gives the client a time to take what is written until end is called.
func (w *responseWriter) within(d time.Duration) (end func()) {
	connection := http.NewResponseController(w.ResponseWriter)
	_ = connection.SetWriteDeadline(time.Now().Add(d)) // what can't have a deadline isn't a connection
	return func() { _ = connection.SetWriteDeadline(time.Time{}) }
}

// Hijack records that the connection switches protocols: nothing else can be responded then.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.code = http.StatusSwitchingProtocols
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController, which flushes.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
