package subresources_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// listens gives the container a standard input.
func listens(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Stdin = true }

func attaches(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Indexed(2), rigtest.RunForever(), listens)
	f.Submit("deaf", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(2))
	f.HubJobUntil("deaf", rigtest.Running(1))
	u := login(f, t, "operator").grant(f, f.NS, "get, create: jobs/attach")
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var out bytes.Buffer
			u.check(u.streams(f.Context(), protocol, "attach", strings.NewReader("through the hub\n"), &out, f.NS, "job", "index=1"))
			if got := out.String(); !strings.HasPrefix(got, "attached to main of job-1-") || !strings.HasSuffix(got, "\nthrough the hub\n") {
				t.Errorf("output %q", got)
			}
		})
	}
	u.cut(u.streams(f.Context(), "WebSocket", "attach", strings.NewReader("?"), nil, f.NS, "deaf"), "has no standard input")
	u.cut(u.streams(f.Context(), "WebSocket", "attach", nil, nil, f.NS, "deaf", "tty=true"), "has no terminal")
}

// forward connects to ports of a Pod as kubectl does.
func (u *user) forward(namespace, job, protocol string, parameters ...string) (httpstream.Connection, error) {
	u.t.Helper()
	target, err := url.Parse(u.config.Host + path(namespace, job, "portforward") + "?" + query(parameters).Encode())
	u.check(err)
	var dialer httpstream.Dialer
	if protocol == "SPDY" {
		transport, upgrader, err := spdy.RoundTripperFor(u.config)
		u.check(err)
		dialer = spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	} else {
		dialer, err = portforward.NewSPDYOverWebsocketDialerForStreaming(target, u.config)
		u.check(err)
	}
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	return conn, err
}

// talk connects to a port, and says a line; it returns what it hears: who answers, and the line.
func (u *user) talk(conn httpstream.Connection, request, port int) (who, line string) {
	u.t.Helper()
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(port))
	header.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(request))
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	_, err := conn.CreateStream(header)
	u.check(err)
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	stream, err := conn.CreateStream(header)
	u.check(err)
	defer stream.Close()
	_, err = fmt.Fprintf(stream, "line %d\n", request)
	u.check(err)
	in := bufio.NewReader(stream)
	who, err = in.ReadString('\n')
	u.check(err)
	line, err = in.ReadString('\n')
	u.check(err)
	return who, line
}

func forwardsPorts(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Indexed(2), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(2))
	u := login(f, t, "operator").grant(f, f.NS, "get, create: jobs/portforward")
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			conn, err := u.forward(f.NS, "job", protocol, "index=1")
			u.check(err)
			defer conn.Close()
			for request, port := range []int{80, 6060, 80} {
				who, line := u.talk(conn, request, port)
				if !strings.HasPrefix(who, fmt.Sprintf("port %d of job-1-", port)) || line != fmt.Sprintf("line %d\n", request) {
					t.Errorf("%q, %q", who, line)
				}
			}
		})
	}
	ended(f, "over")
	_, err := u.forward(f.NS, "over", "WebSocket")
	u.cut(err, "is Succeeded: forwarding ports needs a running one")
}

// A session takes one of the user's places for streams until it ends.
func TestSessionsAreLimited(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	s := serve(f, t, func(o *subresources.Options) { o.StreamsPerUser = 1 })
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	u := reader(f, t).grant(f, f.NS, "get: jobs/log", "get, create: jobs/exec, jobs/attach, jobs/portforward")
	conn, err := u.forward(f.NS, "job", "WebSocket")
	u.check(err)
	u.refused(f.Context(), http.StatusTooManyRequests, `user "reader" has 1 streams open here, which is the limit for a user`, f.NS, "job", "log")
	u.cut(u.exec(f.Context(), nil, nil, f.NS, "job", "command=true"), "which is the limit for a user")
	u.cut(u.streams(f.Context(), "WebSocket", "attach", nil, nil, f.NS, "job"), "which is the limit for a user")

	s.stop()
	select {
	case <-conn.CloseChan(): // a shutdown ends sessions
	case <-f.Context().Done():
		t.Error("the session goes on")
	}
}
