package subresources

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// session is a kind of connection into a running Pod: the Pod's subresource of the same name. The
// manager doesn't interpret what passes over the connection, but bounds what the worker sends: see
// boundSession.
type session struct {
	// name of the subresource, of Jobs here and of Pods in the worker.
	name string
	// what it is, in messages.
	what string
	// options parses the parameters for the worker, without the container.
	options func(*paramParser) url.Values
	// check returns an error if the container can't be connected so. Nil: the connection is to the
	// Pod, and not to a container.
	check func(c *corev1.Container, options url.Values) error
}

var (
	execSession        = session{name: "exec", what: "a command", options: execOptions, check: anyContainer}
	attachSession      = session{name: "attach", what: "attaching", options: streamOptions, check: checkAttach}
	portForwardSession = session{name: "portforward", what: "forwarding ports", options: portOptions}
)

// serve connects the user with the chosen Pod until one of the two ends the connection.
func (s session) serve(h *handler, w *responseWriter, r *http.Request, req *request) error {
	which, options, err := s.parse(r, req.query)
	if err != nil {
		return err
	}
	at, err := h.find.pod(r.Context(), req, which, forExec)
	if err != nil {
		return err
	}
	pod := at.pod
	if pod.Status.Phase != corev1.PodRunning {
		return notYet("Pod %q in worker %q is %s: %s needs a running one", pod.Name, at.worker, pod.Status.Phase, s.what)
	}
	if err := s.choose(pod, which.container, options); err != nil {
		return err
	}
	at.name(w)
	h.logSession(req, at, options.Get(paramContainer))
	target := at.url(options, "api/v1/namespaces", pod.Namespace, "pods", pod.Name, s.name)
	return h.connect(w, r, at.link, s.what, target)
}

// parse returns the choice of a Pod, and the parameters for the worker.
func (s session) parse(r *http.Request, query url.Values) (podChoice, url.Values, error) {
	which, err := parsePodChoice(query)
	if err != nil {
		return podChoice{}, nil, err
	}
	read := &paramParser{query: query}
	options := s.options(read)
	if r.Header.Get("Upgrade") == "" {
		read.fail("%s: the connection must be upgraded to WebSocket or SPDY, as kubectl does", s.name)
	}
	return which, options, read.err
}

// choose adds the container to the options, if the session is with one.
func (s session) choose(pod *corev1.Pod, asked string, options url.Values) error {
	if s.check == nil {
		return nil
	}
	container, err := containerOf(pod, asked)
	if err != nil {
		return err
	}
	options.Set(paramContainer, container.Name)
	return s.check(container, options)
}

func anyContainer(*corev1.Container, url.Values) error { return nil }

// checkAttach returns an error if the streams don't suit those that the container was started with:
// the worker would ignore some of them, or never open them.
func checkAttach(c *corev1.Container, options url.Values) error {
	switch {
	case isOn(options, "stdin") && !c.Stdin:
		return apierrors.NewBadRequest(fmt.Sprintf("stdin: container %q has no standard input: its Pod template lacks stdin: true", c.Name))
	case isOn(options, "tty") && !c.TTY:
		return apierrors.NewBadRequest(fmt.Sprintf("tty: container %q has no terminal: attach without (-t)", c.Name))
	case !isOn(options, "tty") && c.TTY:
		return apierrors.NewBadRequest(fmt.Sprintf("tty: container %q has a terminal: attach with it (-t)", c.Name))
	default:
		return nil
	}
}

// logSession logs who connects to what. Arguments of commands may be secret: they are logged only
// if that's asked for.
func (h *handler) logSession(req *request, at *chosen, container string) {
	logger := h.logger.WithValues("subresource", req.sub.name, "user", req.user.GetName(), "job", req.key,
		"worker", at.worker, "pod", at.pod.Name, "container", container)
	if command := req.query["command"]; len(command) > 0 {
		logger = logger.WithValues("arguments", len(command)-1)
		if h.options.LogArguments {
			logger = logger.WithValues("command", command)
		}
	}
	logger.Info("session starts")
}

// streamParams are parameters of core/v1 PodAttachOptions, and PodExecOptions.
var streamParams = []string{"stdin", "stdout", "stderr", "tty"}

// streamOptions parses which streams are connected.
func streamOptions(read *paramParser) url.Values {
	options := url.Values{}
	for _, name := range streamParams {
		options.Set(name, strconv.FormatBool(read.flag(name)))
	}
	switch {
	case !isOn(options, "stdin") && !isOn(options, "stdout") && !isOn(options, "stderr"):
		read.fail("stdin, stdout, stderr: at least one must be true")
	case isOn(options, "tty") && isOn(options, "stderr"):
		read.fail("tty and stderr: a terminal has one output only")
	}
	return options
}

// portOptions passes on the ports. Only an older protocol, over a WebSocket, has them in a request.
func portOptions(read *paramParser) url.Values {
	if !read.query.Has("ports") {
		return url.Values{}
	}
	return url.Values{"ports": read.query["ports"]}
}

func isOn(options url.Values, name string) bool { return options.Get(name) == "true" }

// execOptions parses a command and its streams.
func execOptions(read *paramParser) url.Values {
	command := slices.Clone(read.query["command"])
	if len(command) == 0 {
		read.fail("command: there must be at least one, its arguments follow as further ones")
	}
	options := streamOptions(read)
	options["command"] = command
	return options
}
