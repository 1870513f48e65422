package subresources_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// ended runs a Job of one Pod to its end.
func ended(f *ferrytest.Ferry, name string, options ...rigtest.Option) string {
	f.Submit(name, append([]rigtest.Option{ferrytest.OnWorker("w1"), rigtest.RunFor(2 * time.Second)}, options...)...)
	f.LeaveWorker("w1")
	f.HubJobUntil(name, func(j *batchv1.Job) bool { return rigtest.Complete(j) || rigtest.Failed(j) })
	return name
}

func readsLogs(t *testing.T) {
	f := ferrytest.For(t)
	ended(f, "one")
	ended(f, "indexed", rigtest.Indexed(3))
	u := reader(f, t)
	ctx := f.Context()

	var pod corev1.Pod
	for _, p := range f.Pods(f.Cluster("w1")) {
		if strings.HasPrefix(p.Name, "one-") {
			pod = p
		}
	}
	direct, err := f.Cluster("w1").Client().CoreV1().Pods(f.NS).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := u.must(ctx, f.NS, "one", "log"); got != string(direct) || !strings.HasSuffix(got, "ended with exit code 0\n") {
		t.Errorf("at the hub %q, in the worker %q", got, direct)
	}
	if got := u.must(ctx, f.NS, "one", "log", "pod="+pod.Name, "container=main", "tailLines=1"); got != "ended with exit code 0\n" {
		t.Errorf("the last line: %q", got)
	}
	if got := u.must(ctx, f.NS, "one", "log", "limitBytes=5"); got != string(direct[:5]) {
		t.Errorf("five bytes: %q", got)
	}
	if got := u.must(ctx, f.NS, "one", "log", "timestamps=true", "tailLines=1"); len(got) < 20 || got[4] != '-' {
		t.Errorf("with a time: %q", got)
	}
	if got := u.must(ctx, f.NS, "one", "log", "sinceTime=2099-01-01T00:00:00Z"); got != "" {
		t.Errorf("of the future: %q", got)
	}
	if got := u.must(ctx, f.NS, "indexed", "log", "index=2"); !strings.Contains(got, "started, index 2\n") {
		t.Errorf("of index 2: %q", got)
	}
	if h, _ := u.headers(ctx, f.NS, "one", "log", nil); h.Get(subresources.PodHeader) != pod.Name || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
}

func followsUntilTheEnd(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunFor(3*time.Second))
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	u := reader(f, t)
	stream, err := u.api.Get().AbsPath(path(f.NS, "job", "log")).Param("follow", "true").Stream(f.Context())
	u.check(err)
	defer stream.Close()
	lines := bufio.NewReader(stream)
	first, err := lines.ReadString('\n')
	u.check(err)
	if job := f.HubJobUntil("job", ferrytest.Exists); rigtest.Complete(job) {
		t.Error("the first line came after the end")
	}
	rest, err := io.ReadAll(lines)
	u.check(err)
	if !strings.HasSuffix(first, "/main started\n") || !strings.HasSuffix(string(rest), "ended with exit code 0\n") {
		t.Errorf("first %q, rest %q", first, rest)
	}
}

func refusesParameters(t *testing.T) {
	f := ferrytest.For(t)
	u := reader(f, t).grant(f, f.NS, "get: jobs/pods, jobs/log, jobs/events, jobs/mirror", "get, create: jobs/exec")
	for parameters, want := range map[string]string{
		"tail=5":                     `unknown parameter "tail"; known: worker, pod, index, container`,
		"follow=perhaps":             `follow: "perhaps" is neither true nor false`,
		"tailLines=-1":               `tailLines: "-1" isn't a number from 0`,
		"limitBytes=0":               `limitBytes: "0" isn't a number from 1`,
		"sinceTime=yesterday":        `sinceTime: "yesterday" isn't a time`,
		"pod=a&index=1":              "pod and index: only one of them",
		"index=one":                  `index: "one" isn't a completion index`,
		"pod=..%2F..%2Fsecrets":      `isn't the name of a Pod`,
		"container=../x":             `isn't the name of a container`,
		"sinceSeconds=1&sinceTime=x": `sinceTime: "x" isn't a time`,
	} {
		u.refused(f.Context(), http.StatusBadRequest, want, f.NS, "any", "log", strings.Split(strings.ReplaceAll(parameters, "%2F", "/"), "&")...)
	}
	u.refused(f.Context(), http.StatusBadRequest, `unknown parameter "limit"; known: worker`, f.NS, "any", "pods", "limit=5")
	u.refused(f.Context(), http.StatusBadRequest, "must be upgraded", f.NS, "any", "exec", "command=true", "stdout=true")
	u.refused(f.Context(), http.StatusBadRequest, "command: there must be at least one", f.NS, "any", "exec", "stdout=true")
	u.refused(f.Context(), http.StatusBadRequest, "tty and stderr", f.NS, "any", "exec", "command=sh", "stderr=true", "tty=true")
}
