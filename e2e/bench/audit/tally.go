package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/jobferry/jobferry/e2e/rig"
)

// Kind is what requests are counted by.
type Kind struct {
	// Cluster is "hub" or "workers".
	Cluster string `json:"cluster"`
	// Verb is the API's, such as "patch".
	Verb string `json:"verb"`
	// Resource has its subresource with it, such as "jobs/status".
	Resource string `json:"resource"`
}

// Count is a number of requests of one kind.
type Count struct {
	Kind
	Requests int `json:"requests"`
	// Failed are those among them that were answered by an error.
	Failed int `json:"failed,omitempty"`
}

// IsEvent tells the requests that write events.
func (k Kind) IsEvent() bool { return k.Resource == "events" }

// IsPod tells the requests about Pods.
func (k Kind) IsPod() bool { return k.Resource == "pods" || strings.HasPrefix(k.Resource, "pods/") }

// Tally counts requests to one cluster, or to some that are taken together, in the order of
// resources and verbs.
func Tally(cluster string, requests []rig.Request) []Count {
	counts := map[Kind]Count{}
	for _, r := range requests {
		kind := Kind{Cluster: cluster, Verb: r.Verb, Resource: resourceOf(r)}
		c := counts[kind]
		c.Kind = kind
		c.Requests++
		if r.Response.Code >= 400 {
			c.Failed++
		}
		counts[kind] = c
	}
	return slices.SortedFunc(maps.Values(counts), func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
}

func resourceOf(r rig.Request) string {
	switch {
	case r.Object.Resource == "":
		return r.URI
	case r.Object.Subresource != "":
		return r.Object.Resource + "/" + r.Object.Subresource
	default:
		return r.Object.Resource
	}
}
