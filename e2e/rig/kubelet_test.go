package rig_test

import (
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Simulated Pods answer kubectl as others do.
func TestLogsAndCommands(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	ns := f.Namespace(c)
	f.Create(c, rigtest.Job(ns, "job", rigtest.RunForever()))
	f.JobUntil(c, ns, "job", rigtest.Running(1))
	if out := f.Kubectl(c, "", "logs", "-n", ns, "job/job", "--limit-bytes=4"); out != "job-" {
		t.Errorf("log: %q", out)
	}
	out := f.Kubectl(c, "said\n", "exec", "-i", "-n", ns, "job/job", "--", "sh", "-c", "cat; echo on $HOSTNAME")
	if !strings.HasPrefix(out, "said\non job-") {
		t.Errorf("exec: %q", out)
	}
	out, err := c.Kubectl(f.Context(), "said\n", "exec", "-i", "-n", ns, "job/job", "--", "sh", "-c", "cat; echo sorry >&2; exit 3")
	if err == nil || out != "said\n" || !strings.Contains(err.Error(), "sorry") || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("exec that fails: %q, %v", out, err)
	}

	f.Create(c, rigtest.Job(ns, "short"))
	if out := f.Kubectl(c, "", "logs", "-f", "-n", ns, "job/short", "--pod-running-timeout=20s"); !strings.HasSuffix(out, "ended with exit code 0\n") {
		t.Errorf("followed: %q", out)
	}
}
