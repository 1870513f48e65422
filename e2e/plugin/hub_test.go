package plugin

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// viewer may see Jobs and what belongs to them; editor may run commands, too.
const viewer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [get, list]}
- {apiGroups: [""], resources: [events], verbs: [list]}
- {apiGroups: [subresources.jobferry.dev], resources: [jobs/pods, jobs/log, jobs/events, jobs/mirror, jobs/why], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{kind: User, name: viewer, apiGroup: rbac.authorization.k8s.io}, {kind: User, name: editor, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: editor}
rules:
- {apiGroups: [subresources.jobferry.dev], resources: [jobs/exec, jobs/attach, jobs/portforward], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: editor}
subjects: [{kind: User, name: editor, apiGroup: rbac.authorization.k8s.io}]
`

// Pods, logs, events and commands of Jobs, with a user's own rights on the hub and none in a
// worker; and each permission of the hub in the worker that this needs.
func TestThroughTheHub(t *testing.T) {
	admin := terminalFor(t)
	admin.StartManagerWithAPI()
	// counting what is free would need to list Pods as well
	admin.register("w1", "--capacity", "Unlimited")
	admin.Apply(admin.Hub, admin.NS, viewer)
	admin.Submit("shards", ferrytest.OnWorker("w1"), rigtest.Indexed(2), rigtest.Parallel(2), rigtest.RunForever())
	admin.HubJobUntil("shards", rigtest.Running(2))
	admin.Submit("done", ferrytest.OnWorker("w1"), rigtest.RunFor(time.Second))
	admin.HubJobUntil("done", rigtest.Complete)

	f := admin.as("viewer")
	f.says(f.ok("pods", "shards", "-o", "wide").out, "shards-0-", "shards-1-", "Running", "node-")
	f.says(f.ok("pods", "shards", "-o", "name").out, "pod/shards-")
	f.says(f.ok("logs", "done").out, "ended with exit code 0\n")
	f.says(f.ok("logs", "done", "-f", "--tail", "1").out, "ended with exit code 0\n")
	f.says(f.ok("logs", "shards", "--index", "1").out, "started, index 1\n")
	f.says(f.ok("logs", "shards", "--all-pods", "--limit-bytes", "1000").out, "[pod/shards-0-", "/main] ", "index 0", "index 1")
	f.says(f.ok("events", "shards").out, "hub ", "Placed", "w1 ", "SuccessfulCreate")
	f.says(f.ok("describe", "shards").out, "WORKER w1", "SuccessfulCreate")
	f.says(f.ok("why", "shards").out, "Placed on w1.", "w1 (placed)", "not checked")
	f.says(f.ok("why", "shards", "-o", "yaml").out, "kind: PlacementExplanation\n", "answer: NotChecked\n")
	f.fails(1, []string{"cannot", "jobs/exec", "edit (exec, "}, "exec", "shards", "--", "true")
	f.fails(1, []string{"index"}, "logs", "shards", "--index", "7")

	e := admin.as("editor")
	e.says(e.ok("exec", "shards", "--index", "1", "--", "sh", "-c", "echo index $JOB_COMPLETION_INDEX").out, "index 1\n")
	if o := e.with("hello\n", "exec", "shards", "--index", "0", "-i", "--", "sh", "-c", "cat; exit 7"); o.code != 7 || o.out != "hello\n" {
		t.Errorf("%+v", o)
	}
	e.says(e.ok("attach", "shards", "--index", "1").out, "attached to main of shards-1-")
	e.copies("shards")
	admin.asKubectl("jobferry", "logs", "done")

	nobody := admin.as("nobody")
	nobody.fails(1, []string{"forbidden", "role view"}, "logs", "shards")
	nobody.fails(1, []string{"forbidden"}, "pods", "shards")

	for _, rule := range workeraccess.Rules() {
		args, about := podSymptoms[rule.Verbs[0]+" "+rule.Resources[0]]
		if !about {
			continue
		}
		admin.without("w1", rule)
		e.fails(1, []string{`worker "w1" refuses this to the hub`}, args...)
		admin.ok("register", "w1", "--worker-context", "w1", "--labels", "name=w1,pool=main")
		admin.untilAllowed("w1", rule)
		if args[0] == "port-forward" { // it goes on until it's ended
			e.forwards("shards")
			continue
		}
		e.ok(args...)
	}
	admin.Delete("shards", metav1.DeletePropagationBackground)
	admin.HubJobGone("shards")
}

// podSymptoms are the commands that fail without a rule.
var podSymptoms = map[string][]string{
	"list events":          {"events", "shards"},
	"get pods":             {"pods", "shards"},
	"get pods/log":         {"logs", "shards", "--index", "0", "--limit-bytes", "10"},
	"get pods/exec":        {"exec", "shards", "--index", "0", "--", "true"},
	"get pods/attach":      {"attach", "shards", "--index", "0"},
	"get pods/portforward": {"port-forward", "shards", "--index", "0", ":80"},
}

// copies copies a directory into a container and back. Commands in the rig's containers run on this
// machine: the other end is a directory here, too.
func (f terminal) copies(job string) {
	f.t.Helper()
	local, container := f.t.TempDir(), f.t.TempDir()
	f.check(os.MkdirAll(filepath.Join(local, "in", "deep"), 0o755))
	f.check(os.WriteFile(filepath.Join(local, "in", "deep", "file"), []byte("content"), 0o600))
	f.check(os.Symlink("file", filepath.Join(local, "in", "deep", "link")))
	f.ok("cp", filepath.Join(local, "in"), job+":"+container, "--index", "1")
	out := f.ok("cp", job+":"+filepath.Join(container, "in"), filepath.Join(local, "back"), "--index", "1")
	f.says(out.err, "skipped, for it's neither a file nor a directory: ./in/deep/link")
	content, err := os.ReadFile(filepath.Join(local, "back", "deep", "file"))
	f.check(err)
	f.says(string(content), "content")
	f.fails(1, []string{"tar in the container", "nothing"}, "cp", job+":"+filepath.Join(container, "nothing"), local)
	f.fails(1, []string{"tar in the container", "nothing"}, "cp", filepath.Join(local, "in"), job+":"+filepath.Join(container, "nothing"))
}

// forwards connects to a port of a Pod by a port of this machine.
func (f terminal) forwards(job string) {
	f.t.Helper()
	program, err := product.Program("kubectl-jobferry")
	f.check(err)
	ctx, cancel := context.WithCancel(f.Context())
	cmd := exec.CommandContext(ctx, program, "port-forward", job, ":6060", "--index", "1", "--address", "127.0.0.1")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig, "HOME="+f.t.TempDir())
	out, err := cmd.StdoutPipe()
	f.check(err)
	f.check(cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	f.check(err)
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
	conn, err := net.Dial("tcp", address)
	f.check(err)
	defer conn.Close()
	line, err = bufio.NewReader(conn).ReadString('\n')
	f.check(err)
	f.says(line, "port 6060 of shards-1-")
}

// as is the terminal of another user of the hub, who knows no worker.
func (f terminal) as(user string) terminal {
	f.t.Helper()
	kubeconfig, err := f.Hub.UserKubeconfigBytes(user)
	f.check(err)
	config, err := clientcmd.Load(kubeconfig)
	f.check(err)
	config.Contexts[config.CurrentContext].Namespace = f.NS
	f.kubeconfig = filepath.Join(f.t.TempDir(), "kubeconfig")
	f.check(clientcmd.WriteToFile(*config, f.kubeconfig))
	return f
}

// asKubectl runs the plugin as kubectl does.
func (f terminal) asKubectl(args ...string) {
	f.t.Helper()
	program, err := product.Program("kubectl-jobferry")
	f.check(err)
	cmd := exec.CommandContext(f.Context(), f.Hub.KubectlProgram(), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig, "HOME="+f.t.TempDir(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ended with exit code 0") {
		f.t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
