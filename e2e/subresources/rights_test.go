package subresources_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/util/version"
)

func forbidsWhatIsNotGranted(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	other := f.Namespace(f.Hub)
	ctx := f.Context()

	watcher := login(f, t, "watcher").grant(f, f.NS, "get: jobs/pods, jobs/events, jobs/mirror")
	watcher.must(ctx, f.NS, "job", "pods")
	watcher.refused(ctx, http.StatusForbidden, `cannot get resource "jobs/log" in API group "subresources.jobferry.dev"`, f.NS, "job", "log")
	watcher.refused(ctx, http.StatusForbidden, "", other, "job", "pods")
	watcher.cut(watcher.exec(ctx, nil, nil, f.NS, "job", "command=true"), `cannot get resource "jobs/exec"`)

	login(f, t, "nobody").refused(ctx, http.StatusForbidden, "", f.NS, "job", "pods")
	// Rights to the hub Job itself give none to what is behind it.
	f.Kubectl(f.Hub, "", "-n", f.NS, "create", "role", "jobs", "--verb=*", "--resource=jobs.batch,pods,pods/log")
	f.Kubectl(f.Hub, "", "-n", f.NS, "create", "rolebinding", "jobs", "--role=jobs", "--user=submitter")
	login(f, t, "submitter").refused(ctx, http.StatusForbidden, "", f.NS, "job", "log")
}

// The server refuses direct requests: without credentials, with a certificate of the hub, and with
// a user name in a header.
func refusesSideEntrances(t *testing.T) {
	f := ferrytest.For(t)
	u := login(f, t, "insider").grant(f, f.NS, "get: jobs/pods")
	address := f.Kubectl(f.Hub, "", "get", "apiservice", "v1alpha1.subresources.jobferry.dev", "-o", "jsonpath=127.0.0.1:{.spec.service.port}")
	insider, err := tls.X509KeyPair(u.config.CertData, u.config.KeyData)
	u.check(err)
	for name, certificates := range map[string][]tls.Certificate{"without a certificate": nil, "with a user's": {insider}} {
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, Certificates: certificates, //nolint:gosec // whom we talk to is not what is tested
		}}}
		for p, want := range map[string]int{
			path(f.NS, "job", "pods"): http.StatusUnauthorized, "/apis": http.StatusUnauthorized,
			"/leader/namespaces/" + f.NS + "/jobs/job/why": http.StatusUnauthorized, "/openapi/v2": http.StatusUnauthorized, "/": http.StatusUnauthorized, "/healthz": http.StatusOK,
		} {
			request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "https://"+address+p, nil)
			u.check(err)
			request.Header.Set("X-Remote-User", "admin")
			request.Header.Set("X-Remote-Group", "system:masters")
			answer, err := web.Do(request)
			u.check(err)
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s, %s: %d, want %d", name, p, answer.StatusCode, want)
			}
		}
		web.CloseIdleConnections()
	}
}

// A worker gets nothing of the hub's users but their names, in the User-Agent: all requests have
// the manager's credentials.
func keepsHeadersApart(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	u := reader(f, t).grant(f, f.NS, "get: jobs/log", "get, create: jobs/exec")
	u.must(f.Context(), f.NS, "job", "log")
	u.check(u.exec(f.Context(), nil, nil, f.NS, "job", "command=true"))
	seen := map[string]bool{}
	for len(seen) < 2 { // the audit log is written when a request has ended
		requests, err := f.Cluster("w1").Requests()
		u.check(err)
		for _, r := range requests {
			if r.Object.Namespace != f.NS || r.Object.Subresource != "log" && r.Object.Subresource != "exec" {
				continue
			}
			seen[r.Object.Subresource] = true
			agent := fmt.Sprintf("jobferry-manager/%s (user %q; job %s/job)", version.Get(), u.name, f.NS)
			if strings.Contains(r.User.Username, u.name) || r.UserAgent != agent {
				t.Errorf("%s by %q, %q", r.Object.Subresource, r.User.Username, r.UserAgent)
			}
		}
		if context.Cause(f.Context()) != nil {
			t.Fatal("the worker's audit log has no log and exec")
		}
	}
}
