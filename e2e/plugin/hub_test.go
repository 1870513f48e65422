package plugin

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// aggregation has the hub's API server pass requests on to the manager, which puts its own
// authority into the APIService. Without a kube-proxy a Service's own address leads nowhere: one
// with an external name is what the API server connects to itself.
const aggregation = `
apiVersion: v1
kind: Service
metadata: {name: jobferry-subresources, namespace: jobferry-system}
spec: {type: ExternalName, externalName: 127.0.0.1}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.subresources.jobferry.dev}
spec:
  group: subresources.jobferry.dev
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: jobferry-subresources, namespace: jobferry-system, port: %d}
`

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
- {apiGroups: [subresources.jobferry.dev], resources: [jobs/exec], verbs: [get, create]}
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
	admin.serveSubresources()
	admin.register("w1", "--capacity", "Unlimited") // counting what is free would need to list Pods as well
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
	f.fails(1, []string{"cannot", "jobs/exec", "edit (exec)"}, "exec", "shards", "--", "true")
	f.fails(1, []string{"index"}, "logs", "shards", "--index", "7")

	e := admin.as("editor")
	e.says(e.ok("exec", "shards", "--index", "1", "--", "sh", "-c", "echo index $JOB_COMPLETION_INDEX").out, "index 1\n")
	if o := e.with("hello\n", "exec", "shards", "--index", "0", "-i", "--", "sh", "-c", "cat; exit 7"); o.code != 7 || o.out != "hello\n" {
		t.Errorf("%+v", o)
	}
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
		e.ok(args...)
	}
	admin.Delete("shards", metav1.DeletePropagationBackground)
	admin.HubJobGone("shards")
}

// podSymptoms are the commands that fail without a rule.
var podSymptoms = map[string][]string{
	"list events":   {"events", "shards"},
	"get pods":      {"pods", "shards"},
	"get pods/log":  {"logs", "shards", "--index", "0", "--limit-bytes", "10"},
	"get pods/exec": {"exec", "shards", "--index", "0", "--", "true"},
}

// serveSubresources runs the manager as a process that serves the aggregated API, too.
func (f terminal) serveSubresources() {
	f.t.Helper()
	address := freeAddress(f.t)
	_, port, err := net.SplitHostPort(address)
	f.check(err)
	number, err := strconv.Atoi(port)
	f.check(err)
	f.Apply(f.Hub, "", fmt.Sprintf(aggregation, number))
	f.StartManager("--subresources-bind-address=" + address)
	f.Kubectl(f.Hub, "", "wait", "--for=condition=Available", "apiservice/v1alpha1.subresources.jobferry.dev", "--timeout=60s")
}

// freeAddress is below the range of outgoing connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for port := 21000; port < 32000; port++ {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
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
