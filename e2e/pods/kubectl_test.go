package pods_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
)

// What kubectl does with Pods works on the hub, without a plugin.
func TestKubectlOnTheHub(t *testing.T) {
	f := ferrytest.For(t)
	s := serveKubelet(f, t)
	f.RunManager(s.manage)
	f.Register("w1")
	s.show(f)
	pod := s.run(f, "job", 1, listens)[0].Name
	for _, verb := range []struct {
		name string
		test func(*testing.T, *ferrytest.Ferry, string)
	}{{"logs", kubectlLogs}, {"exec", kubectlExec}, {"attach", kubectlAttach}, {"cp", kubectlCp}, {"port-forward", kubectlPortForward}} {
		t.Run(verb.name, func(t *testing.T) { verb.test(t, f, pod) })
	}
	requests, err := f.Cluster("w1").Requests()
	s.check(err)
	// The worker's audit log has the hub and the Job; the hub's has the user.
	want := fmt.Sprintf("(user \"kube-apiserver-kubelet-client\"; job %s/job)", f.NS)
	found := slices.ContainsFunc(requests, func(r rig.Request) bool {
		return r.Object.Namespace == f.NS && r.Object.Subresource == "exec" && strings.Contains(r.UserAgent, want)
	})
	if !found {
		t.Errorf("the worker's audit log has no command by %s", want)
	}
}

func kubectlLogs(t *testing.T, f *ferrytest.Ferry, pod string) {
	t.Helper()
	for _, of := range []string{pod, "job/job", "-l batch.kubernetes.io/job-name=job --tail=-1"} {
		if log := f.Kubectl(f.Hub, "", append([]string{"logs", "-n", f.NS}, strings.Fields(of)...)...); !strings.Contains(log, "started, index 0\n") {
			t.Errorf("%s: %q", of, log)
		}
	}
	if log := f.Kubectl(f.Hub, "", "logs", "-n", f.NS, pod, "-c", "main", "--limit-bytes=4"); log != "job-" {
		t.Errorf("--limit-bytes: %q", log)
	}
	if log := f.Kubectl(f.Hub, "", "logs", "-n", f.NS, pod, "--tail=2", "--timestamps"); strings.Count(log, "\n") != 2 || !strings.Contains(log, "Z line ") {
		t.Errorf("--tail --timestamps: %q", log)
	}
	for since, want := range map[string]bool{"--since=1h": true, "--since-time=2026-01-02T03:04:05Z": true, "--since-time=2099-01-02T03:04:05Z": false} {
		if log := f.Kubectl(f.Hub, "", "logs", "-n", f.NS, pod, since); strings.Contains(log, "started") != want {
			t.Errorf("%s: %q", since, log)
		}
	}
	_, err := f.Hub.Kubectl(f.Context(), "", "logs", "-n", f.NS, pod, "--previous")
	if err == nil || !strings.Contains(err.Error(), `worker "w1": previous terminated container "main" in pod "`+pod+`" not found`) {
		t.Errorf("--previous: %v", err)
	}
}

func kubectlExec(t *testing.T, f *ferrytest.Ferry, pod string) {
	t.Helper()
	out := f.Kubectl(f.Hub, "said\n", "exec", "-i", "-n", f.NS, "job/job", "--", "sh", "-c", "cat; echo index $JOB_COMPLETION_INDEX on $HOSTNAME")
	if out != "said\nindex 0 on "+pod+"\n" {
		t.Errorf("%q", out)
	}
	_, err := f.Hub.Kubectl(f.Context(), "", "exec", "-n", f.NS, pod, "--", "sh", "-c", "echo sorry >&2; exit 7")
	if err == nil || !strings.Contains(err.Error(), "sorry") || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("a command that fails: %v", err)
	}
}

func kubectlAttach(t *testing.T, f *ferrytest.Ferry, pod string) {
	t.Helper()
	out := f.Kubectl(f.Hub, "through the hub\n", "attach", "-i", "-q", "-n", f.NS, pod)
	if !strings.HasPrefix(out, "attached to main of "+pod) || !strings.HasSuffix(out, "through the hub\n") {
		t.Errorf("%q", out)
	}
}

func kubectlCp(t *testing.T, f *ferrytest.Ferry, pod string) {
	t.Helper()
	here, there := t.TempDir(), t.TempDir() // the container's files are this machine's
	from := filepath.Join(here, "from")
	content := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 1<<16)
	check(t, os.WriteFile(from, content, 0o600))
	f.Kubectl(f.Hub, "", "cp", from, f.NS+"/"+pod+":"+filepath.Join(there, "copy"))
	f.Kubectl(f.Hub, "", "cp", f.NS+"/"+pod+":"+filepath.Join(there, "copy"), filepath.Join(here, "back"))
	if got, err := os.ReadFile(filepath.Join(here, "back")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func kubectlPortForward(t *testing.T, f *ferrytest.Ferry, pod string) {
	t.Helper()
	for protocol := range map[string]bool{"SPDY": true, "WebSocket": true} {
		conn, err := ferrytest.ForwardPorts(f.Hub.RESTConfig(), protocol, portsOf(f.NS, pod))
		check(t, err)
		for request, port := range []int{80, 6060} {
			who, line, err := ferrytest.Talk(conn, request, port)
			check(t, err)
			if who != fmt.Sprintf("port %d of %s\n", port, pod) || line != fmt.Sprintf("line %d\n", request) {
				t.Errorf("%s: %q, %q", protocol, who, line)
			}
		}
		conn.Close()
	}
}
