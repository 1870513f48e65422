package subresources

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
)

// parts are whom a handler asks.
type parts struct {
	authenticate userSource
	authorize    rights
	find         *finder
}

// handler answers requests.
type handler struct {
	parts
	options  Options
	logger   logr.Logger
	metrics  *meter
	streams  *limiter
	requests *limiter
	// stopping ends all streams.
	stopping context.Context
}

func newHandler(s *server, p parts) http.Handler {
	h := &handler{
		parts: p, options: s.options, logger: s.log, metrics: s.metrics, stopping: s.stopping,
		streams:  newLimiter("logs and commands", s.options.StreamsPerUser, s.options.Streams),
		requests: newLimiter("requests", s.options.RequestsPerUser, s.options.Requests),
	}
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	for path, content := range documents() {
		mux.Handle(path, h.known(func(w http.ResponseWriter, _ *http.Request, _ user.Info) { writeJSON(w, http.StatusOK, content) }))
	}
	mux.Handle(pattern, h.known(h.call))
	mux.Handle("/", h.known(func(w http.ResponseWriter, r *http.Request, _ user.Info) { writeError(w, unknownPath(r)) }))
	return mux
}

// known lets requests through for which the hub's front proxy names a user.
func (h *handler) known(next func(http.ResponseWriter, *http.Request, user.Info)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := h.authenticate.userOf(r)
		if u == nil {
			writeError(w, statusError(http.StatusUnauthorized, "Unauthorized",
				"this API is served through the hub's API server only: ask there for %s", apiRoot))
			return
		}
		next(w, r, u)
	})
}

// call answers one request for a subresource.
func (h *handler) call(w http.ResponseWriter, r *http.Request, u user.Info) {
	began := time.Now()
	c, err := parseCall(r)
	if err != nil {
		writeError(w, err)
		return
	}
	out := &answer{ResponseWriter: w}
	defer func() { h.metrics.answered(c.sub.name, out.code, time.Since(began)) }()
	if err := h.admitted(out, r, u, c); err != nil {
		h.failed(out, r, c, err)
	}
}

// admitted serves the call, if the user may make it and there's a place for it.
func (h *handler) admitted(w *answer, r *http.Request, u user.Info, c *call) error {
	limit := h.requests
	if c.sub.stream {
		limit = h.streams
	}
	leave, err := limit.enter(u.GetName())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), h.options.RequestTimeout)
	err = h.authorize.check(ctx, u, c)
	cancel()
	if err != nil {
		return err
	}
	if c.sub.stream {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(h.stopping, cancel)()
		defer h.metrics.stream(c.sub.name)()
		r = r.WithContext(ctx)
	}
	h.logger.V(1).Info("request", "user", u.GetName(), "job", c.key, "subresource", c.sub.name)
	if c.sub.name == "exec" {
		h.logger.Info("command", "user", u.GetName(), "groups", u.GetGroups(), "job", c.key,
			"pod", c.query.Get("pod"), "container", c.query.Get("container"), "command", c.query["command"])
	}
	return c.sub.serve(h, w, r, c)
}

// failed tells the client of an error. When an answer has begun, the only way to say that it isn't
// complete is to break the connection.
func (h *handler) failed(w *answer, r *http.Request, c *call, err error) {
	if r.Context().Err() != nil {
		return // there's nobody to tell
	}
	if w.code == 0 {
		if errors.Is(err, context.Canceled) {
			err = unavailable("this replica of the manager is being shut down: ask again")
		}
		writeError(w, err)
		return
	}
	h.logger.Info("an answer breaks off", "job", c.key, "subresource", c.sub.name, "reason", err.Error())
	panic(http.ErrAbortHandler)
}

// answer knows whether, and with which code, an answer has begun.
type answer struct {
	http.ResponseWriter
	code int
}

func (a *answer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(content []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.ResponseWriter.Write(content)
}

// Unwrap is for http.ResponseController, which flushes and hijacks.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
