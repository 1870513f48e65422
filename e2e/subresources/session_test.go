package subresources_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
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
	return ferrytest.ForwardPorts(u.config, protocol, path(namespace, job, "portforward")+"?"+query(parameters).Encode())
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
				who, line, err := ferrytest.Talk(conn, request, port)
				u.check(err)
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
