package clients_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/clients"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/real/sandbox"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// python is Debian's, for which the package python3-kubernetes is.
const python = "/usr/bin/python3"

// hasClient installs the Python client if it's missing and this is a machine with apt-get and root.
// Where that doesn't do, it says so loudly.
func hasClient() bool {
	works := func() bool { return exec.Command(python, "-c", "import kubernetes").Run() == nil }
	if works() {
		return true
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		fmt.Println("install: python3-kubernetes")
		if err := sandbox.Install([]string{"python3-kubernetes"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if works() {
		return true
	}
	bar := strings.Repeat("*", 78)
	fmt.Fprintf(os.Stderr, "%s\nSKIPPED: THE PYTHON CLIENT WASN'T TRIED, as this machine has none (Debian package python3-kubernetes).\n%s\n", bar, bar)
	return false
}

// needsPython leaves a test out where there is no client, which hasClient has told.
func needsPython(t *testing.T) {
	t.Helper()
	if !hasClient() {
		t.Skip("no Python client")
	}
}

// A typed client that is older than spec.managedBy leaves it out of what it writes back.
func TestPythonReadsChangesAndReplaces(t *testing.T) {
	needsPython(t)
	f := clients.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	for _, worker := range []string{"w1", "w2"} {
		f.LeaveWorker(worker)
	}
	run := func(arguments ...string) string {
		t.Helper()
		out, err := runPython(t, f, "client.py", arguments...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", arguments, err, out)
		}
		return out
	}
	parallel := func(n int32) func(*batchv1.Job) bool {
		return func(m *batchv1.Job) bool { return *m.Spec.Parallelism == n }
	}

	run("create", "job")
	worker := ferrytest.ClusterOf(f.HubJobUntil("job", rigtest.Running(1)))
	before := f.MirrorUntil(worker, "job", rigtest.Running(1))
	run("replace", "job", "2")
	after := f.MirrorUntil(worker, "job", ferrytest.All(parallel(2), func(m *batchv1.Job) bool { return m.Labels["parallelism"] == "2" }))
	if after.UID != before.UID {
		t.Error("the mirror was made anew")
	}
	run("patch", "job", "1")
	f.MirrorUntil(worker, "job", parallel(1))
	if got, want := run("status", "job"), "jobferry.dev/Placed=True"; !strings.Contains(got, want) {
		t.Errorf("conditions %q, want %q among them", got, want)
	}
	run("delete", "job")
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
}
