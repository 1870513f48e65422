package kubelet

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logParams are a log's, which have the same names in the Kubernetes API.
var logParams = []string{"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"}

// sessionParams are a session's, and their names in the Kubernetes API.
var sessionParams = map[string]map[string]string{
	Exec:        {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty", "command": "command"},
	Attach:      {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"},
	PortForward: {"port": "ports"},
}

// options translates the parameters of a request. It refuses unknown ones: a newer API server would
// ask for something that it doesn't get.
func options(subresource string, query url.Values) (url.Values, error) {
	out := url.Values{}
	for name, values := range query {
		to := name
		if subresource != Log {
			to = sessionParams[subresource][name]
		} else if !slices.Contains(logParams, name) {
			to = ""
		}
		if to == "" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("unknown parameter %.40q", name))
		}
		out[to] = values
	}
	if subresource == PortForward {
		var ports []string // API servers send them as one
		for _, list := range out["ports"] {
			ports = append(ports, strings.Split(list, ",")...)
		}
		out["ports"] = ports
	}
	if isOn(out, "tty") {
		out.Del("stderr") // a terminal has one output, and kubelets leave this out, too
	}
	return out, nil
}

// isOn reports whether a parameter is set as API servers set it.
func isOn(of url.Values, name string) bool {
	return of.Get(name) == "1" || of.Get(name) == "true"
}
