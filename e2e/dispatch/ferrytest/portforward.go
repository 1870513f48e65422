package ferrytest

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// ForwardPorts connects to ports as kubectl does, over SPDY or WebSocket. The path is that of the
// subresource portforward.
func ForwardPorts(config *rest.Config, protocol, path string) (httpstream.Connection, error) {
	target, err := url.Parse(config.Host + path)
	if err != nil {
		return nil, err
	}
	var dialer httpstream.Dialer
	if protocol == "SPDY" {
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			return nil, err
		}
		dialer = spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	} else if dialer, err = portforward.NewSPDYOverWebsocketDialerForStreaming(target, config); err != nil {
		return nil, err
	}
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	return conn, err
}

// Talk connects to a port, and says a line; it returns what it hears: who answers, and the line.
func Talk(conn httpstream.Connection, request, port int) (who, line string, err error) {
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(port))
	header.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(request))
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	if _, err := conn.CreateStream(header); err != nil {
		return "", "", err
	}
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	stream, err := conn.CreateStream(header)
	if err != nil {
		return "", "", err
	}
	defer stream.Close()
	if _, err := fmt.Fprintf(stream, "line %d\n", request); err != nil {
		return "", "", err
	}
	in := bufio.NewReader(stream)
	if who, err = in.ReadString('\n'); err != nil {
		return "", "", err
	}
	line, err = in.ReadString('\n')
	return who, line, err
}
