package subresources_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// exec runs a command by WebSocket, as kubectl does.
func (u *user) exec(ctx context.Context, in io.Reader, out *bytes.Buffer, namespace, job string, parameters ...string) error {
	return u.streams(ctx, "WebSocket", "exec", in, out, namespace, job, parameters...)
}

// protocols are those by which kubectl connects: WebSocket, and SPDY where that isn't let through.
var protocols = map[string]func(*rest.Config, *url.URL) (remotecommand.Executor, error){
	"WebSocket": func(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
	},
	"SPDY": func(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	},
}

// streams connects streams with a container, by exec or attach.
func (u *user) streams(ctx context.Context, protocol, sub string, in io.Reader, out *bytes.Buffer, namespace, job string, parameters ...string) error {
	u.t.Helper()
	values := query(append([]string{"stdout=true"}, parameters...))
	if !values.Has("tty") { // a terminal has one output
		values.Set("stderr", "true")
	}
	if in != nil {
		values.Set("stdin", "true")
	}
	target, err := url.Parse(u.config.Host + path(namespace, job, sub) + "?" + values.Encode())
	u.check(err)
	executor, err := protocols[protocol](u.config, target)
	u.check(err)
	if out == nil {
		out = &bytes.Buffer{}
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &bytes.Buffer{}})
}

func runsCommands(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Indexed(2), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(2))
	u := login(f, t, "operator").grant(f, f.NS, "get, create: jobs/exec")
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var out bytes.Buffer
			err := u.streams(f.Context(), protocol, "exec", strings.NewReader("through the hub\n"), &out, f.NS, "job",
				"index=1", "command=sh", "command=-c", "command=cat; echo index $JOB_COMPLETION_INDEX; exit 7")
			var code utilexec.ExitError
			if !errors.As(err, &code) || code.ExitStatus() != 7 {
				t.Errorf("error %v", err)
			}
			if got := out.String(); got != "through the hub\nindex 1\n" {
				t.Errorf("output %q", got)
			}
		})
	}
	ended(f, "over")
	u.cut(u.exec(f.Context(), nil, nil, f.NS, "over", "command=true"), "is Succeeded: a command needs a running one")
}

// The hub's API server takes a WebSocket's GET for the verb get, and lets this user pass.
func needsCreateForSessions(t *testing.T) {
	f := ferrytest.For(t)
	u := login(f, t, "onlooker").grant(f, f.NS, "get: jobs/exec, jobs/attach, jobs/portforward")
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	u.cut(u.exec(f.Context(), nil, nil, f.NS, "job", "command=true"), "verb create on jobs/exec")
	u.cut(u.streams(f.Context(), "WebSocket", "attach", nil, nil, f.NS, "job"), "verb create on jobs/attach")
	_, err := u.forward(f.NS, "job", "WebSocket")
	u.cut(err, "verb create on jobs/portforward")
}

// Each session is a right of its own: who has one can't have another.
func keepsSessionsApart(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	for _, session := range []string{"exec", "attach", "portforward"} {
		u := login(f, t, "only-"+session).grant(f, f.NS, "get, create: jobs/"+session)
		for other, try := range map[string]func() error{
			"exec":   func() error { return u.exec(f.Context(), nil, nil, f.NS, "job", "command=true") },
			"attach": func() error { return u.streams(f.Context(), "WebSocket", "attach", nil, nil, f.NS, "job") },
			"portforward": func() error {
				conn, err := u.forward(f.NS, "job", "WebSocket")
				if err == nil {
					conn.Close()
				}
				return err
			},
		} {
			if err := try(); other == session {
				u.check(err)
			} else {
				u.cut(err, fmt.Sprintf("cannot get resource %q", "jobs/"+other))
			}
		}
	}
}
