package subresources

import (
	"net/http"
	"slices"
)

// The API.
const (
	// Group of the aggregated API.
	Group = "subresources.jobferry.dev"
	// Version of the aggregated API.
	Version = "v1alpha1"
	// WorkerHeader of an answer names the worker that it comes from.
	WorkerHeader = "Jobferry-Worker"
	// PodHeader of an answer names the Pod, where it's about one.
	PodHeader = "Jobferry-Pod"
)

// subresource is something of a Job that can be asked for.
type subresource struct {
	name string
	// verb is what a user needs on jobs/name.
	verb    string
	methods []string
	// kind and of are what the API's discovery says of it.
	kind string
	of   string // API group and version of the kind
	// stream: without an end of its own, and counted as such.
	stream bool
	serve  func(*handler, *answer, *http.Request, *call) error
}

// all are the subresources, in the order of the alphabet. It's made by a function, as the handlers
// lead back to it.
func all() []subresource {
	return []subresource{
		{name: "events", verb: "get", methods: []string{http.MethodGet}, kind: "EventList", of: "v1", serve: (*handler).events},
		{name: "exec", verb: "create", methods: []string{http.MethodGet, http.MethodPost}, kind: "PodExecOptions", of: "v1",
			stream: true, serve: (*handler).exec},
		{name: "log", verb: "get", methods: []string{http.MethodGet}, kind: "PodLogOptions", of: "v1", stream: true, serve: (*handler).log},
		{name: "mirror", verb: "get", methods: []string{http.MethodGet}, kind: "Job", of: "batch/v1", serve: (*handler).mirror},
		{name: "pods", verb: "get", methods: []string{http.MethodGet}, kind: "PodList", of: "v1", serve: (*handler).pods},
	}
}

// verbs are what the hub's API server asks for before it passes a request on: it goes by the
// method.
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
