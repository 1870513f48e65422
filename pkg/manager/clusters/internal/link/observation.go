package link

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

// Observation is what one attempt to connect found.
type Observation struct {
	State   State
	Reason  string
	Message string
	// At is when the attempt began: for a failure, that is when the loss did.
	At time.Time
	// Answered: the worker itself answered.
	Answered bool
	// Version and ClusterUID are empty if they weren't read.
	Version    string
	ClusterUID types.UID
}
