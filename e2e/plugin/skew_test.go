package plugin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// laterField is where the CRD of a newer hub has a setting that this plugin doesn't know.
const laterField = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later"

// A setting that a newer plugin has applied stays, whatever this one does with the worker.
func TestKeepsSettingsOfANewerPlugin(t *testing.T) {
	f := terminalFor(t)
	f.RunManager()
	f.register("w1")
	t.Cleanup(f.restoreCRD)
	crd := []string{"patch", "crd", "workerclusters.jobferry.dev", "--type=json", "-p"}
	f.Kubectl(f.Hub, "", append(crd, `[{"op": "add", "path": "`+laterField+`", "value": {"type": "string"}}]`)...)
	f.applyLater("w1")

	for _, args := range [][]string{
		{"register", "w1", "--worker-context", "w1", "--capacity", "Unlimited"},
		{"cordon", "w1"}, {"uncordon", "w1"},
	} {
		f.ok(args...)
		if got := f.Kubectl(f.Hub, "", "get", "workercluster", "w1", "-o", "jsonpath={.spec.later}"); got != "kept" {
			t.Errorf("after %s, the setting is %q", strings.Join(args, " "), got)
		}
	}
	// An older hub has no such setting: what is applied to it says so.
	f.Kubectl(f.Hub, "", append(crd, `[{"op": "remove", "path": "`+laterField+`"}, {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/capacity"}]`)...)
	f.fails(1, []string{"field not declared in schema", "the CRD on the hub is older than this plugin"},
		"register", "w1", "--worker-context", "w1", "--capacity", "Unlimited")
}

// restoreCRD makes the CRD what it is in the checkout.
func (f terminal) restoreCRD() {
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := f.Hub.Kubectl(ctx, "", "apply", "--server-side", "--force-conflicts", "-k", checkout.Path("config", "crd")); err != nil {
		f.t.Error(err)
	}
}

// applyLater applies a worker as a newer plugin would.
func (f terminal) applyLater(name string) {
	f.t.Helper()
	is := &v1alpha1.WorkerCluster{}
	f.check(json.Unmarshal([]byte(f.Kubectl(f.Hub, "", "get", "workercluster", name, "-o", "json")), is))
	spec := map[string]any{"kubeconfigSecret": is.Spec.KubeconfigSecret, "later": "kept"}
	content, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "WorkerCluster", "spec": spec,
		"metadata": metav1.ObjectMeta{Name: name, Labels: is.Labels},
	})
	f.check(err)
	f.Kubectl(f.Hub, string(content), "apply", "--server-side", "--field-manager=kubectl-jobferry", "--force-conflicts", "-f", "-")
}
