package subresources

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Options of the server. Zero fields get their defaults.
type Options struct {
	// Endpoint is where the aggregated API is served, if anywhere.
	Endpoint
	// Node is where the kubelet's API of Nodes that stand for workers is served, if anywhere.
	Node Endpoint
	// Namespace of the registration Secrets. Required.
	Namespace string
	// Origin of this hub's mirrors. Default: the UID of its kube-system namespace.
	Origin v1alpha1.Origin

	// Explainer says in which workers a Job could run, while this replica leads. Nil: it never does,
	// and asks the one that leads.
	Explainer Explainer
	// Lease by which the replicas elect their leader. Default jobferry-manager.
	Lease string

	// DialTimeout is for a TCP connection to a worker or another replica, and again for TLS. Default
	// 5s.
	DialTimeout time.Duration
	// RequestTimeout is for one read from a worker or the hub, and for the start of a command.
	// Default 15s.
	RequestTimeout time.Duration
	// StallTimeout bounds the time without data of a log that isn't followed. Default 60s.
	StallTimeout time.Duration

	// StreamsPerUser bounds the logs and sessions that a user has open in this replica. Default 50.
	StreamsPerUser int
	// Streams bounds those of all users; the namespaces share them. Default 1000.
	Streams int
	// WatchesPerUser bounds the watches of dispatchedjobs that a user has open in this replica.
	// Default 10.
	WatchesPerUser int
	// Watches bounds those of all users; the namespaces share them. Each is a watch on the hub, too.
	// Default 100.
	Watches int
	// Requests bounds all else; a user has requestsPerUser of them. Default 100.
	Requests int

	// LogArguments logs the arguments of commands, which may be secret.
	LogArguments bool

	// Metrics is where the metrics are registered. Default: controller-runtime's.
	Metrics prometheus.Registerer
}

// Endpoint is where an API is served.
type Endpoint struct {
	// Address to listen on, such as ":6443". Without it, and without Listener, the API isn't served.
	Address string
	// Listener is used instead of Address.
	Listener net.Listener
	// Certificate is presented to the hub's API server. It has its leaf, as tls.X509KeyPair returns
	// it. Required with an address.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// isOn reports whether the API is served.
func (e *Endpoint) isOn() bool { return e.Address != "" || e.Listener != nil }

// Validate reports all settings that can't be used.
func (o *Options) Validate() error {
	var errs []error
	nodesAlone := !o.isOn() && o.Node.isOn()
	if !o.isOn() && !nodesAlone {
		errs = append(errs, errors.New("address: must not be empty"))
	}
	if o.Certificate == nil && !nodesAlone || o.Node.isOn() && o.Node.Certificate == nil {
		errs = append(errs, errors.New("certificate: there must be one"))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("namespace: must not be empty"))
	}
	for name, n := range map[string]int{
		"streams per user": o.StreamsPerUser, "streams": o.Streams,
		"watches per user": o.WatchesPerUser, "watches": o.Watches,
		"requests": o.Requests,
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, but is %d", name, n))
		}
	}
	for name, d := range map[string]time.Duration{
		"dial timeout": o.DialTimeout, "request timeout": o.RequestTimeout,
		"stall timeout": o.StallTimeout,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, but is %s", name, d))
		}
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.Lease = cmp.Or(o.Lease, "jobferry-manager")
	o.DialTimeout = cmp.Or(o.DialTimeout, 5*time.Second)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 15*time.Second)
	o.StallTimeout = cmp.Or(o.StallTimeout, time.Minute)
	o.StreamsPerUser = cmp.Or(o.StreamsPerUser, 50)
	o.Streams = cmp.Or(o.Streams, 1000)
	o.WatchesPerUser = cmp.Or(o.WatchesPerUser, 10)
	o.Watches = cmp.Or(o.Watches, 100)
	o.Requests = cmp.Or(o.Requests, 100)
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	return o
}
