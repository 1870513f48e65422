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
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exec connects a client with a command in a container. The manager doesn't interpret the streams.
func (h *handler) exec(w *responseWriter, r *http.Request, req *request) error {
	which, options, err := parseExec(r, req.query)
	if err != nil {
		return err
	}
	p, err := h.find.find(r.Context(), req)
	if err != nil {
		return err
	}
	at, err := p.pod(r.Context(), which, forExec)
	if err != nil {
		return err
	}
	pod := at.pod
	if pod.Status.Phase != corev1.PodRunning {
		return notYet("Pod %q in worker %q is %s: a command needs a running one", pod.Name, at.worker, pod.Status.Phase)
	}
	container, err := containerOf(pod, which.container)
	if err != nil {
		return err
	}
	options.Set(paramContainer, container)
	at.name(w)
	h.logCommand(req, at.worker, pod.Name, container)
	target := at.url(options, "api/v1/namespaces", pod.Namespace, "pods", pod.Name, "exec")
	return h.connect(w, r, at.link, target)
}

// logCommand logs who runs a command where. Arguments may be secret: they are logged only if that's
// asked for.
func (h *handler) logCommand(req *request, worker, pod, container string) {
	command := req.query["command"]
	logger := h.logger.WithValues("user", req.user.GetName(), "job", req.key, "worker", worker, "pod", pod, "container", container,
		"arguments", len(command)-1)
	if h.options.LogArguments {
		logger = logger.WithValues("command", command)
	}
	logger.Info("command starts")
}

// execStreams are parameters of core/v1 PodExecOptions.
var execStreams = []string{"stdin", "stdout", "stderr", "tty"}

// parseExec parses the parameters of a command: those of core/v1 PodExecOptions, and the choice of
// a Pod. It returns the parameters for the worker, without the container.
func parseExec(r *http.Request, query url.Values) (podChoice, url.Values, error) {
	which, err := parsePodChoice(query)
	if err != nil {
		return podChoice{}, nil, err
	}
	read := &paramParser{query: query}
	options := url.Values{"command": query["command"]}
	for _, name := range execStreams {
		options.Set(name, strconv.FormatBool(read.flag(name)))
	}
	on := func(name string) bool { return options.Get(name) == "true" }
	switch {
	case len(query["command"]) == 0:
		read.fail("command: there must be at least one, its arguments follow as further ones")
	case !on("stdin") && !on("stdout") && !on("stderr"):
		read.fail("stdin, stdout, stderr: at least one must be true")
	case on("tty") && on("stderr"):
		read.fail("tty and stderr: a terminal has one output only")
	case r.Header.Get("Upgrade") == "":
		read.fail("exec: the connection must be upgraded to WebSocket or SPDY, as kubectl does")
	}
	return which, options, read.err
}

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

// connect proxies the connection to the worker's API server until it ends. While it does, it holds no
// object of the worker.
func (h *handler) connect(w *responseWriter, r *http.Request, at *link, target *url.URL) error {
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
			stall.disable() // a command may take any time
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
		return fmt.Errorf("exec in worker %q: %w", at.worker, refused)
	}
	return fromWorker(at.worker, "exec", stall.reason(refused))
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
