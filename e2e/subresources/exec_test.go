package subresources_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// exec runs a command by WebSocket, as kubectl does.
func (u *user) exec(ctx context.Context, in io.Reader, out *bytes.Buffer, namespace, job string, parameters ...string) error {
	return u.execBy(ctx, func(target *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(u.config, http.MethodGet, target.String())
	}, in, out, namespace, job, parameters...)
}

func (u *user) execBy(ctx context.Context, by func(*url.URL) (remotecommand.Executor, error), in io.Reader, out *bytes.Buffer,
	namespace, job string, parameters ...string,
) error {
	u.t.Helper()
	values := query(append([]string{"stdout=true", "stderr=true"}, parameters...))
	if in != nil {
		values.Set("stdin", "true")
	}
	target, err := url.Parse(u.config.Host + path(namespace, job, "exec") + "?" + values.Encode())
	u.check(err)
	executor, err := by(target)
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
	protocols := map[string]func(*url.URL) (remotecommand.Executor, error){
		"WebSocket": func(to *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(u.config, http.MethodGet, to.String())
		},
		"SPDY": func(to *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(u.config, http.MethodPost, to)
		},
	}
	for name, by := range protocols {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := u.execBy(f.Context(), by, strings.NewReader("through the hub\n"), &out, f.NS, "job",
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

func needsCreateForCommands(t *testing.T) {
	f := ferrytest.For(t)
	// The hub's API server takes a WebSocket's GET for the verb get, and lets this user pass.
	u := login(f, t, "onlooker").grant(f, f.NS, "get: jobs/exec")
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	u.cut(u.exec(f.Context(), nil, nil, f.NS, "job", "command=true"), "verb create on jobs/exec")
}
