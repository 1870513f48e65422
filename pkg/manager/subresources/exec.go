package subresources

import (
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// exec connects a client with a command in a container. What they say to each other is between them
// and the worker's API server.
func (h *handler) exec(w *answer, r *http.Request, c *call) error {
	which, options, err := parseExec(r, c.query)
	if err != nil {
		return err
	}
	at, err := h.find.find(r.Context(), c.key)
	if err != nil {
		return err
	}
	pod, err := at.pod(r.Context(), which, forExec)
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return notYet("Pod %q in worker %q is %s: a command needs a running one", pod.Name, at.worker, pod.Status.Phase)
	}
	container, err := containerOf(pod, which.container)
	if err != nil {
		return err
	}
	options.Set(paramContainer, container)
	w.Header().Set(WorkerHeader, at.worker)
	w.Header().Set(PodHeader, pod.Name)
	h.logger.Info("command starts", "job", c.key, "worker", at.worker, "pod", pod.Name, "container", container)
	target := at.url(options, "api/v1/namespaces", pod.Namespace, "pods", pod.Name, "exec")
	return h.connect(w, r, at, target)
}

// parseExec reads the parameters of a command: those of core/v1 PodExecOptions, and which Pod. It
// answers with those for the worker, without the container.
func parseExec(r *http.Request, query url.Values) (wanted, url.Values, error) {
	streams := []string{"stdin", "stdout", "stderr", "tty"}
	if err := only(query, append([]string{paramPod, paramIndex, paramContainer, "command"}, streams...)...); err != nil {
		return wanted{}, nil, err
	}
	which, err := parseWanted(query)
	if err != nil {
		return wanted{}, nil, err
	}
	read := &reader{query: query}
	options := url.Values{"command": query["command"]}
	for _, name := range streams {
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

// Headers that pass: what the two protocols need. No header of the user's goes to the worker
// besides, nor any of the worker's to the user.
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

// connect tunnels the connection to the worker's API server, and returns when it has ended.
func (h *handler) connect(w *answer, r *http.Request, at *home, target *url.URL) error {
	dog := newWatchdog(r.Context(), h.options.RequestTimeout)
	defer dog.end()
	var refused error
	tunnel := &httputil.ReverseProxy{
		Transport: at.send,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, ""
			p.Out.Header = pick(p.Out.Header, upgradeRequestHeaders)
		},
		ModifyResponse: func(resp *http.Response) error {
			dog.leash() // from here on it takes as long as it takes
			if resp.StatusCode != http.StatusSwitchingProtocols {
				return upgradeRefused(resp)
			}
			resp.Header = pick(resp.Header, upgradeResponseHeaders)
			w.code = resp.StatusCode
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { refused = err },
		ErrorLog:     stdlog.New(io.Discard, "", 0), // connections that end, however
	}
	tunnel.ServeHTTP(w, r.WithContext(dog.ctx))
	if refused == nil {
		return nil
	}
	if w.code != 0 {
		return fmt.Errorf("exec in worker %q: %w", at.worker, refused)
	}
	return fromWorker(at.worker, "exec", dog.reason(refused))
}

// upgradeRefused reads what the worker says instead of switching protocols.
func upgradeRefused(resp *http.Response) error {
	body, err := io.ReadAll(resp.Body) // bounded by the link
	if err != nil {
		return err
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if status, ok := object.(*metav1.Status); err == nil && ok && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	return &apierrors.StatusError{ErrStatus: failure(int32(resp.StatusCode), "", string(body))} //nolint:gosec // three digits
}
