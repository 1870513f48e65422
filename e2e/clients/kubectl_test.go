package clients_test

import (
	"encoding/json"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/clients"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// What a client exported of a Job before, it writes back later: kubectl with replace and apply, and
// Terraform's provider, which replaces labels and annotations as a whole. The Job runs on.
func TestAnExportIsWrittenBack(t *testing.T) {
	f := clients.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	jobs := f.Hub.Client().BatchV1().Jobs(f.NS)
	created := f.Submit("job", rigtest.RunForever())
	placed := f.HubJobUntil("job", func(j *batchv1.Job) bool { return ferrytest.ClusterOf(j) == "w1" })
	f.HubJobUntil("job", rigtest.Running(1))
	before := f.MirrorUntil("w1", "job", rigtest.Running(1))

	for name, export := range map[string]*batchv1.Job{"when it was created": created, "when it was placed": placed} {
		for _, how := range [][]string{{"replace"}, {"apply"}, {"apply", "--server-side", "--force-conflicts"}} {
			manifest := export.DeepCopy()
			manifest.APIVersion, manifest.Kind, manifest.ResourceVersion, manifest.ManagedFields = "batch/v1", "Job", "", nil
			text, err := json.Marshal(manifest)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Hub.Kubectl(f.Context(), string(text), append(how, "-n", f.NS, "-f", "-")...); err != nil {
				t.Errorf("as it was %s, %v: %v", name, how, err)
			}
			is := f.HubJobUntil("job", rigtest.Running(1))
			f.HubJobUntil("job", func(j *batchv1.Job) bool { return slices.Contains(j.Finalizers, v1alpha1.FinalizerMirror) })
			if ferrytest.ClusterOf(is) != "w1" {
				t.Errorf("as it was %s, %v: the Job is on %q", name, how, ferrytest.ClusterOf(is))
			}
		}
	}
	terraform, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/annotations", "value": created.Annotations},
		{"op": "replace", "path": "/spec/parallelism", "value": 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Patch(f.Context(), "job", types.JSONPatchType, terraform, metav1.PatchOptions{}); err != nil {
		t.Errorf("Terraform: %v", err)
	}
	f.MirrorUntil("w1", "job", func(m *batchv1.Job) bool { return *m.Spec.Parallelism == 2 })
	if after := f.MirrorUntil("w1", "job", rigtest.Running(1)); after.UID != before.UID {
		t.Error("the mirror was made anew")
	}
}

// All that kubectl exports, with status, uid and resourceVersion, is applied and replaced as it is
// with one cluster: what is unchanged is, and an export that is older is a conflict.
func TestAnExportIsWrittenBackAsItIs(t *testing.T) {
	f := clients.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	f.Kubectl(f.Hub, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"job"},"spec":{"template":{
		"metadata":{"labels":{"rig.jobferry.dev/run-for":"forever"}},
		"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"example.org/main"}]}}}}`, "create", "-n", f.NS, "-f", "-")
	f.HubJobUntil("job", rigtest.Running(1))
	before := f.MirrorUntil("w1", "job", rigtest.Running(1))

	export := f.Kubectl(f.Hub, "", "get", "job", "job", "-n", f.NS, "-o", "json")
	for _, how := range []string{"apply", "replace"} {
		f.Kubectl(f.Hub, export, how, "-n", f.NS, "-f", "-")
		export = f.Kubectl(f.Hub, "", "get", "job", "job", "-n", f.NS, "-o", "json")
	}
	f.Kubectl(f.Hub, "", "label", "job", "job", "-n", f.NS, "team=a")
	f.MirrorUntil("w1", "job", func(m *batchv1.Job) bool { return m.Labels["team"] == "a" })
	if _, err := f.Hub.Kubectl(f.Context(), export, "replace", "-n", f.NS, "-f", "-"); err == nil {
		t.Error("an export that is older, and names its resourceVersion, replaces what was written since")
	}
	if after := f.MirrorUntil("w1", "job", rigtest.Running(1)); after.UID != before.UID {
		t.Error("the mirror was made anew")
	}
	f.Kubectl(f.Hub, "", "wait", "job/job", "-n", f.NS, "--for=condition=jobferry.dev/Placed", "--timeout=30s")
}
