package plugin

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// What --dry-run prints, applied by kubectl, and the token put in its place by the command that it
// names, is what register makes.
func TestDryRun(t *testing.T) {
	f := terminalFor(t)
	f.RunManager()
	register := []string{"register", "w2", "--worker-context", "w2", "--all-namespaces", "--labels", "name=w2,pool=main", "--job-controller", "Embedded", "--carry", "Secret"}
	both := f.ok(append(register, "--dry-run=client", "-o", "yaml")...)
	f.says(both.out, "# worker: cluster of the context w2\n", "# hub\n", "kind: ClusterRole\n", "kind: WorkerCluster\n")
	worker := f.ok(append(register, "--dry-run", "--manifests", "worker")...)
	hub := f.ok(append(register, "--dry-run", "--manifests", "hub")...)
	if worker.out+hub.out != both.out || strings.Contains(worker.out, "# hub") {
		t.Error("the parts aren't the whole")
	}
	f.Kubectl(f.Cluster("w2"), worker.out, "apply", "--server-side", "-f", "-")
	token := f.tokenBy(hub.err)
	f.Kubectl(f.Hub, strings.ReplaceAll(hub.out, registration.TokenPlaceholder, token), "apply", "--server-side", "-f", "-")
	f.letGoAfter("w2")
	f.WorkerUntil("w2", ferrytest.Ready)

	before := f.registrationAt("w2")
	f.ok(register...)
	if after := f.registrationAt("w2"); before != after {
		t.Errorf("register changes what was applied:\n%s\nto\n%s", before, after)
	}
	f.SetWorker("w2", `{"jobController":"BuiltIn"}`) // nothing runs mirrors of the other kind here
	f.Submit("pi", ferrytest.OnWorker("w2"))
	f.LeaveWorker("w2")
	f.HubJobUntil("pi", rigtest.Complete)
}

// tokenBy runs the command that --dry-run names.
func (f terminal) tokenBy(hint string) string {
	f.t.Helper()
	found := regexp.MustCompile(`kubectl --context w2 -n jobferry-system (create token \S+ --duration \S+)`).FindStringSubmatch(hint)
	if found == nil {
		f.t.Fatalf("no command for the token in %q", hint)
	}
	return strings.TrimSpace(f.Kubectl(f.Cluster("w2"), "", append([]string{"-n", v1alpha1.SystemNamespace}, strings.Fields(found[1])...)...))
}

// registrationAt is the content of what a registration consists of, in both clusters.
func (f terminal) registrationAt(worker string) string {
	f.t.Helper()
	var all []string
	for _, where := range []struct {
		cluster string
		what    []string
	}{
		{worker, []string{"serviceaccounts,roles,rolebindings,secrets", "-n", v1alpha1.SystemNamespace, "-l", v1alpha1.LabelHub}},
		{worker, []string{"clusterroles,clusterrolebindings", "-l", v1alpha1.LabelHub}},
		{"hub", []string{"secret", worker, "-n", ferrytest.SystemNamespace}},
		{"hub", []string{"workercluster", worker}},
	} {
		text := f.Kubectl(f.Cluster(where.cluster), "", append([]string{"get", "-o", "json"}, where.what...)...)
		var object map[string]any
		f.check(json.Unmarshal([]byte(text), &object))
		content, err := json.MarshalIndent(contentOf(object), "", " ")
		f.check(err)
		all = append(all, string(content))
	}
	return strings.Join(all, "\n")
}

// contentOf leaves out what API server and manager write by themselves.
func contentOf(object map[string]any) map[string]any {
	for _, field := range []string{"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp"} {
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, field)
		}
	}
	delete(object, "status")
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			if item, ok := item.(map[string]any); ok {
				contentOf(item)
			}
		}
	}
	return object
}
