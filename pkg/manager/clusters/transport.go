package clusters

import (
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// What connections to a worker have in common, whoever makes them.
type (
	// Transport carries requests to one worker.
	Transport = link.Transport
	// TransportOptions bound the connections of a Transport.
	TransportOptions = link.TransportOptions
)

// AnyHost stands for the address of the worker in requests to a Transport.
const AnyHost = link.AnyHost

// ErrNotConnected is returned by a Worker's client, without a request being sent, while the worker
// doesn't answer or isn't to be used. Wait for Listener.WorkerChanged.
var ErrNotConnected = link.ErrNotConnected

// ParseKubeconfig turns the kubeconfig of a registration Secret into a client configuration, or
// says why it's refused.
func ParseKubeconfig(raw []byte) (*rest.Config, error) { return link.ParseKubeconfig(raw) }

// NewTransport makes a Transport from the kubeconfig of a registration Secret, by the rules of
// ParseKubeconfig. It sends nothing.
func NewTransport(kubeconfig []byte, options TransportOptions) (*Transport, error) {
	return link.NewTransport(kubeconfig, options)
}
