package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State is what a connection is in.
type State string

const (
	// Connecting: there was no answer yet, good or bad, since the manager
	// started or the kubeconfig changed; or the mirrors are being listed.
	Connecting State = "Connecting"
	// Ready: the worker answers, and its mirrors are known.
	Ready State = "Ready"
	// Disconnected: the worker doesn't answer, or not in a useful way.
	Disconnected State = "Disconnected"
	// Refused: the worker isn't used, whether or not it answers.
	Refused State = "Refused"
)

// Health is what is known of a connection. It changes by verdicts only.
type Health struct {
	State   State
	Reason  string
	Message string
	// Since is the loss clock: when the worker was first found not to be
	// Ready. Zero while it's Ready, and after a restart of the manager that
	// left it Ready, until the first verdict.
	Since time.Time
	// LastContact is when the worker last answered; zero: not yet.
	LastContact time.Time
	// Version is the API server's gitVersion, ClusterUID the UID of its
	// kube-system namespace, as of the last time that they were read.
	Version    string
	ClusterUID types.UID
}

// verdict is the outcome of one attempt to be in contact.
type verdict struct {
	state   State
	reason  string
	message string
	// at is when the attempt began: for a failure, that is when the loss did.
	at time.Time
	// answered: the worker itself said so.
	answered bool
	// version and clusterUID are empty if they weren't read.
	version    string
	clusterUID types.UID
}

// after is the health once a verdict is in.
func (h Health) after(v verdict) Health {
	next := h
	next.State, next.Reason, next.Message = v.state, v.reason, v.message
	if v.answered {
		next.LastContact = v.at
	}
	if v.version != "" {
		next.Version = v.version
	}
	if v.clusterUID != "" {
		next.ClusterUID = v.clusterUID
	}
	switch {
	case v.state == Ready:
		next.Since = time.Time{}
	case h.Since.IsZero() && v.state != Connecting:
		next.Since = v.at
	}
	return next
}

// sameToOthers says whether nobody needs to be told of the change.
func (h Health) sameToOthers(other Health) bool {
	h.LastContact, other.LastContact = time.Time{}, time.Time{}
	return h == other
}
