package subresources

import (
	"net/http"
	"slices"
)

// Names of the API.
const (
	// Group of the aggregated API.
	Group = "subresources.jobferry.dev"
	// Version of the aggregated API.
	Version = "v1alpha1"
	// WorkerHeader of an answer names the worker that it comes from, or those that were asked.
	WorkerHeader = "Jobferry-Worker"
	// PodHeader of an answer names the Pod, where it's about one.
	PodHeader = "Jobferry-Pod"
)

// subresource is one row of the table of what can be requested of a Job.
type subresource struct {
	name string
	// verb is what a user needs on jobs/name.
	verb    string
	methods []string
	// params are the query's, besides commonParams.
	params []string
	// kind and of are in the API's discovery.
	kind string
	of   string // API group and version of the kind
	// stream: a request without an end of its own, which has its own limits.
	stream bool
	// whole: it's no subresource of Jobs, but a resource.
	whole bool
	serve func(*handler, *responseWriter, *http.Request, *request) error
}

// all returns the subresources in alphabetical order. A variable would be an initialization cycle:
// the handlers use it.
func all() []subresource {
	return []subresource{
		connection(attachSession, "PodAttachOptions", slices.Concat(podParams, streamParams)),
		{name: "events", verb: "get", methods: []string{http.MethodGet}, kind: "EventList", of: "v1", params: []string{paramWorker}, serve: (*handler).events},
		connection(execSession, "PodExecOptions", slices.Concat(podParams, []string{"command"}, streamParams)),
		{name: "log", verb: "get", methods: []string{http.MethodGet}, kind: "PodLogOptions", of: "v1",
			params: slices.Concat(podParams, []string{"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes"}),
			stream: true, serve: (*handler).log},
		{name: "mirror", verb: "get", methods: []string{http.MethodGet}, kind: "Job", of: "batch/v1", params: []string{paramWorker}, serve: (*handler).mirror},
		{name: "pods", verb: "get", methods: []string{http.MethodGet}, kind: "PodList", of: "v1", params: []string{paramWorker}, serve: (*handler).pods},
		connection(portForwardSession, "PodPortForwardOptions", []string{paramWorker, paramPod, paramIndex}),
		{name: "why", verb: "get", methods: []string{http.MethodGet}, kind: "PlacementExplanation", of: "jobferry.dev/v1alpha1", serve: (*handler).why},
	}
}

// connection is the row of a session: a WebSocket begins with GET, SPDY with POST.
func connection(s session, kind string, params []string) subresource {
	return subresource{name: s.name, verb: "create", methods: []string{http.MethodGet, http.MethodPost}, kind: kind, of: "v1",
		params: params, stream: true,
		serve: func(h *handler, w *responseWriter, r *http.Request, req *request) error { return s.serve(h, w, r, req) }}
}

// resource is how the hub's RBAC calls it.
func (s subresource) resource() string {
	if s.whole {
		return s.name
	}
	return "jobs/" + s.name
}

// verbs are those that the hub's API server authorizes before it proxies a request, by its method.
func (s subresource) verbs() []string {
	by := map[string]string{http.MethodGet: "get", http.MethodPost: "create"}
	verbs := make([]string, 0, len(s.methods))
	for _, method := range s.methods {
		verbs = append(verbs, by[method])
	}
	return verbs
}

func lookUp(name string) (subresource, bool) {
	known := all()
	i := slices.IndexFunc(known, func(s subresource) bool { return s.name == name })
	if i < 0 {
		return subresource{}, false
	}
	return known[i], true
}
