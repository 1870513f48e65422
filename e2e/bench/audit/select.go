package audit

import (
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
)

// Select returns the requests that pass all filters.
func Select(requests []rig.Request, filters ...func(rig.Request) bool) []rig.Request {
	var selected []rig.Request
next:
	for _, r := range requests {
		for _, passes := range filters {
			if !passes(r) {
				continue next
			}
		}
		selected = append(selected, r)
	}
	return selected
}

// By passes the requests of a user.
func By(user string) func(rig.Request) bool {
	return func(r rig.Request) bool { return r.User.Username == user }
}

// In passes the requests for objects in a namespace.
func In(namespace string) func(rig.Request) bool {
	return func(r rig.Request) bool { return r.Object.Namespace == namespace }
}

// Between passes the requests that were received in a span of time.
func Between(from, to time.Time) func(rig.Request) bool {
	return func(r rig.Request) bool { return !r.Received.Time.Before(from) && r.Received.Time.Before(to) }
}

// Passed passes what wasn't answered by an error.
func Passed(r rig.Request) bool { return r.Response.Code < 400 }

// WritesStatus passes the writes of a Job's status.
func WritesStatus(r rig.Request) bool {
	return r.Object.Resource == "jobs" && r.Object.Subresource == "status" && (r.Verb == "update" || r.Verb == "patch")
}

// IsUpkeep passes what is done by the clock.
func IsUpkeep(r rig.Request) bool {
	return r.Object.Resource == "leases" || IsProbe(r) || r.Verb == "watch"
}

// IsProbe passes the requests by which the manager finds out whether a worker answers: it reads the
// namespace whose UID stands for the cluster, its version, and the resourceVersion of its state.
func IsProbe(r rig.Request) bool {
	if r.Verb == "list" && r.Object.Name == "jobferry-probe" {
		return true
	}
	readsCluster := r.Object.Resource == "namespaces" && r.Object.Name == "kube-system"
	return r.Verb == "get" && (readsCluster || r.URI == "/version")
}

// Not turns a filter round.
func Not(filter func(rig.Request) bool) func(rig.Request) bool {
	return func(r rig.Request) bool { return !filter(r) }
}
