package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State is what a connection is in.
type State string

const (
	// Connecting: there was no answer yet, good or bad, since the manager started or the kubeconfig
	// changed; or the mirrors are being listed.
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
	// Since is the loss clock: when the worker was first found not to be Ready. Zero while it's
	// Ready, and after a restart of the manager that left it Ready, until the first verdict.
	Since time.Time
	// LossClock is from when on workerLostTimeout counts: Since, or the end of a time in which the
	// hub was isolated. Zero while Since is.
	LossClock time.Time
	// Observed is since when this process has found the worker Ready, or not, without a break. Zero
	// before the first verdict.
	Observed time.Time
	// LastContact is when the worker last answered; zero: not yet.
	LastContact time.Time
	// Version is the API server's gitVersion, ClusterUID the UID of its kube-system namespace, as
	// of the last time that they were read.
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
	if h.Observed.IsZero() || verdictOf(h.State) != verdictOf(v.state) {
		next.Observed = v.at
	}
	switch {
	case v.state == Ready:
		next.Since, next.LossClock = time.Time{}, time.Time{}
	case h.Since.IsZero() && v.state != Connecting:
		next.Since, next.LossClock = v.at, v.at
	}
	return next
}

// verdictOf is what a state says of a worker: that it's there, that it isn't, or neither.
func verdictOf(s State) int {
	switch s {
	case Ready:
		return 1
	case Disconnected, Refused:
		return -1
	default:
		return 0
	}
}

// sameToOthers says whether nobody needs to be told of the change.
func (h Health) sameToOthers(other Health) bool {
	h.LastContact, other.LastContact = time.Time{}, time.Time{}
	return h == other
}
