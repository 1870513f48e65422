package plugin

import (
	"io"
	"net/http"
	"net/url"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/streaming/pkg/httpstream"
)

func newPortForward(c *cli) *cobra.Command {
	var choice podFlags
	var addresses []string
	cmd := &cobra.Command{
		Use:   "port-forward JOB [LOCAL_PORT:]REMOTE_PORT...",
		Short: "Forward local ports to a Pod of a Job, through the hub",
		Long: templates.LongDesc(`
			Forward local ports to ports of a Job's Pod, in its worker, through the hub, until the Pod ends. By default,
			port-forward uses the newest running Pod. You need permission to create jobs/portforward of subresources.jobferry.dev on
			the hub.`),
		Example: templates.Examples(`
			# The profile of a running program
			kubectl jobferry port-forward train 6060

			# Port 8888 here is port 80 in the Pod of one index; a free port here is 9090 there
			kubectl jobferry port-forward shards --index 7 8888:80 :9090`),
		Args:              positional(2, -1, "a JOB and at least one port"),
		ValidArgsFunction: c.completeJobs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.portForward(cmd, &choice, addresses, args[0], args[1:])
		},
	}
	choice.add(c, cmd)
	cmd.Flags().StringSliceVar(&addresses, "address", []string{"localhost"}, "Addresses to listen on: localhost, or IP addresses")
	return cmd
}

func (c *cli) portForward(cmd *cobra.Command, choice *podFlags, addresses []string, job string, ports []string) error {
	subresources, _, err := c.subresourcesOf(cmd.Context(), job)
	if err != nil {
		return err
	}
	dialer, err := portDialer(subresources.Config, subresources.SessionURL("portforward", choice.choice(cmd), &corev1.PodPortForwardOptions{}))
	if err != nil {
		return err
	}
	// A worker's errors are logged, and klog writes those of several lines as they are.
	ctx := klog.NewContext(cmd.Context(), funcr.New(func(_, text string) { c.say("%s", text) }, funcr.Options{}))
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, addresses, ports, make(chan struct{}), c.Out, c.ErrOut)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	return sessionError("port-forward", forwarder.ForwardPorts())
}

// portDialer connects by WebSocket, and by SPDY where a proxy doesn't let that through, as kubectl
// does.
func portDialer(config *rest.Config, address *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	byWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return nil, err
	}
	bySPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	return errorsBounded{portforward.NewFallbackDialerForStreaming(byWebSocket, bySPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})}, nil
}

// maxPortError is more than an error of a port has. Client-go reads all that a worker says is one.
const maxPortError = 64 << 10

// errorsBounded bounds the errors of each port.
type errorsBounded struct{ httpstream.Dialer }

// Dial connects.
func (d errorsBounded) Dial(protocols ...string) (httpstream.Connection, string, error) {
	connection, protocol, err := d.Dialer.Dial(protocols...)
	if err != nil {
		return nil, "", err
	}
	return boundedConnection{connection}, protocol, nil
}

type boundedConnection struct{ httpstream.Connection }

// CreateStream makes a stream.
func (c boundedConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	stream, err := c.Connection.CreateStream(headers)
	if err != nil || headers.Get(corev1.StreamType) != corev1.StreamTypeError {
		return stream, err
	}
	return boundedStream{stream, io.LimitReader(stream, maxPortError)}, nil
}

type boundedStream struct {
	httpstream.Stream

	bounded io.Reader
}

// Read reads as much as there may be.
func (s boundedStream) Read(p []byte) (int, error) { return s.bounded.Read(p) }
