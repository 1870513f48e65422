package subresources

import (
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These are the only headers that pass between the user and the worker: the two protocols need
// them.
var (
	upgradeRequestHeaders = []string{"Connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
		"Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "X-Stream-Protocol-Version"}
	upgradeResponseHeaders = []string{"Connection", "Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
		"Sec-WebSocket-Extensions", "X-Stream-Protocol-Version"}
)

func pick(from http.Header, names []string) http.Header {
	picked := http.Header{}
	for _, name := range names {
		if values := from[textproto.CanonicalMIMEHeaderKey(name)]; len(values) > 0 {
			picked[textproto.CanonicalMIMEHeaderKey(name)] = values
		}
	}
	return picked
}

// connect proxies a connection to the worker's API server until it ends. While it does, it holds no
// object of the worker.
func (h *handler) connect(w *responseWriter, r *http.Request, at *link, what string, target *url.URL) error {
	stall := newStallTimer(r.Context(), h.options.RequestTimeout)
	defer stall.end()
	var refused error
	tunnel := &httputil.ReverseProxy{
		// Not the context of the proxy's own: with that, a worker's informational responses (103 and
		// the like) would pass to the user, with any header.
		Transport: sender(func(out *http.Request) (*http.Response, error) { return at.send.RoundTrip(out.WithContext(stall.ctx)) }),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, ""
			p.Out.Header = pick(p.Out.Header, upgradeRequestHeaders)
		},
		ModifyResponse: func(resp *http.Response) error {
			if err := checkUpgrade(resp); err != nil {
				return err // the worker's connection is closed
			}
			stall.disable() // a session may take any time
			boundSession(resp)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { refused = err },
		ErrorLog:     stdlog.New(io.Discard, "", 0), // of connections that end in any way
	}
	tunnel.ServeHTTP(w, r.WithContext(stall.ctx))
	if refused == nil {
		return nil
	}
	if w.code != 0 {
		return fmt.Errorf("%s in worker %q: %w", what, at.worker, refused)
	}
	return fromWorker(at.worker, what, stall.reason(refused))
}

// sender is a function as an http.RoundTripper.
type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

// checkUpgrade returns an error unless the response switches to the protocol that was requested. Of
// the response, it leaves only what may pass.
func checkUpgrade(resp *http.Response) error {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return upgradeRefused(resp)
	}
	wanted := resp.Request.Header.Get("Upgrade")
	if got := resp.Header.Get("Upgrade"); wanted == "" || !strings.EqualFold(got, wanted) {
		return fmt.Errorf("it switches to protocol %q, where %q was requested", shorten(got), shorten(wanted))
	}
	resp.Status = "" // the standard text
	resp.Header = pick(resp.Header, upgradeResponseHeaders)
	return nil
}

// upgradeRefused returns the error in a response that doesn't switch protocols. Its body may be
// endless: the first part is enough.
func upgradeRefused(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	if err != nil {
		return err
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return &apierrors.StatusError{ErrStatus: failure(int32(resp.StatusCode), "", string(body))} //nolint:gosec // three digits
}
