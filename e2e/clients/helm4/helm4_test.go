package helm4_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/clients"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A hook that fails fails the release. What it has said, Helm prints where the hub shows Pods, and
// nothing of it otherwise, without a word.
func TestTheLogOfAFailedHook(t *testing.T) {
	f := clients.For(t)
	clients.RunManagerWithPods(f, t)
	f.Register("w1")
	f.LeaveWorker("w1")
	h := newHelm(t, f)
	h.write("hook.yaml", `
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migration
  annotations:
    helm.sh/hook: pre-install
    helm.sh/hook-output-log-policy: hook-failed
spec:
  backoffLimit: 0
  template:
    metadata:
      labels: {rig.jobferry.dev/run-for: 5s, rig.jobferry.dev/exit-code: "1"}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.org/migration}]
`)
	const said = "ended with exit code 1"
	for _, row := range []struct {
		release string
		shown   bool
	}{{"unseen", false}, {"seen", true}} {
		if row.shown {
			f.Kubectl(f.Hub, "", "label", "namespace", f.NS, v1alpha1.LabelPods+"="+v1alpha1.PodsEnabled)
		}
		out, err := h.run(f.Context(), "install", row.release, h.chart)
		if err == nil || strings.Contains(out, said) != row.shown {
			t.Errorf("%s: %v\n%s", row.release, err, out)
		}
		f.HubJobUntil(row.release+"-migration", rigtest.Failed)
	}
}

// A Job that waits for a worker has no start time, which Helm 4's --wait wants, and Helm 3's
// doesn't. It installs the release all the same if it waits for hooks alone.
func TestAReleaseWithAJobThatWaits(t *testing.T) {
	f := clients.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	h := newHelm(t, f)
	h.write("job.yaml", `
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  annotations: {jobferry.dev/cluster-selector: "{{ .Values.where }}"}
spec:
  template:
    metadata:
      labels: {rig.jobferry.dev/run-for: forever}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.org/main}]
`)
	out, err := h.run(f.Context(), "install", "waits", h.chart, "--set", "where=name=nowhere", "--wait", "--timeout", "5s")
	if want := "resource Job/" + f.NS + "/waits not ready. status: InProgress, message: Job not started"; err == nil || !strings.Contains(out, want) {
		t.Errorf("%v, want %q:\n%s", err, want, out)
	}
	for release, args := range map[string][]string{
		"hooks": {"--set", "where=name=nowhere", "--wait=hookOnly"},
		"runs":  {"--set", "where=name=w1", "--wait", "--timeout", "2m"},
	} {
		if out, err := h.run(f.Context(), append([]string{"install", release, h.chart}, args...)...); err != nil {
			t.Errorf("%s: %v\n%s", release, err, out)
		}
	}
	f.HubJobUntil("runs", func(j *batchv1.Job) bool { return j.Status.StartTime != nil })
}

// helm is the program, with a chart of one template.
type helm struct {
	t                    *testing.T
	f                    *ferrytest.Ferry
	program, home, chart string
}

func newHelm(t *testing.T, f *ferrytest.Ferry) helm {
	t.Helper()
	program, err := binaries.Tool(t.Context(), binaries.Helm4, binaries.Lines(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h := helm{t, f, program, dir, filepath.Join(dir, "chart")}
	if err := os.MkdirAll(filepath.Join(h.chart, "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.file("Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
	return h
}

func (h helm) file(name, content string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.chart, name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h helm) write(template, content string) {
	h.t.Helper()
	h.file(filepath.Join("templates", template), content)
}

// run returns all that Helm prints.
func (h helm) run(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.program, append(arguments, "--kubeconfig", h.f.Hub.Kubeconfig(), "--namespace", h.f.NS)...)
	cmd.Env = append(os.Environ(), "HOME="+h.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
