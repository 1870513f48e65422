package upgrade_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// full is a WorkerCluster with all settings. It has no registration, so that they have no effect.
const full = `{"apiVersion": "jobferry.dev/v1alpha1", "kind": "WorkerCluster",
	"metadata": {"name": "full", "labels": {"a": "b"}, "annotations": {"c": "d"}},
	"spec": {
		"kubeconfigSecret": "full", "jobController": "Embedded", "cordoned": true, "drain": true, "workerLostTimeout": "7m0s",
		"weight": 1, "capacity": "Unlimited", "namespaceSelector": {"matchLabels": {"team": "a"}}, "createNamespaces": false,
		"carry": ["ConfigMap", "Secret", "ServiceAccount"], "maxMirrors": 77, "removalPolicy": "Orphan"}}`

// fields is what the WorkerCluster has to keep.
type fields struct {
	stage  *stage
	spec   map[string]any
	weight int
}

func (s *stage) createFull() *fields {
	s.t.Helper()
	s.Kubectl(s.hub, full, "create", "-f", "-")
	f := &fields{stage: s}
	f.spec = f.read()["spec"].(map[string]any)
	return f
}

func (f *fields) read() map[string]any {
	f.stage.t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(f.stage.kubectl("get", "workercluster", "full", "-o", "json")), &object); err != nil {
		f.stage.t.Fatal(err)
	}
	return object
}

// set changes a setting. It fails the test if the hub's CRD doesn't have it.
func (f *fields) set(name string, value any) {
	f.stage.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{name: value}})
	if err != nil {
		f.stage.t.Fatal(err)
	}
	f.stage.kubectl("patch", "workercluster", "full", "--type=merge", "-p", string(patch))
	f.spec[name] = value
}

// expectKept has the manager write the WorkerCluster, and checks that this changed no setting.
func (f *fields) expectKept() {
	t := f.stage.t
	t.Helper()
	f.stage.log("the manager writes a WorkerCluster with all settings")
	f.weight++
	f.set("weight", float64(f.weight))
	generation := f.read()["metadata"].(map[string]any)["generation"].(float64)
	f.stage.kubectl("wait", "workercluster/full", "--for=jsonpath={.status.observedGeneration}="+strconv.Itoa(int(generation)), "--timeout=60s")
	is := f.read()
	if diff := cmp.Diff(f.spec, is["spec"]); diff != "" {
		t.Errorf("the WorkerCluster lost settings (-want +got):\n%s", diff)
	}
	metadata := is["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if labels["a"] != "b" || annotations["c"] != "d" {
		t.Errorf("the WorkerCluster has the labels %v and the annotations %v", labels, annotations)
	}
}

// expectAll checks that the WorkerCluster has each setting of the hub's CRD.
func (f *fields) expectAll() {
	t := f.stage.t
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(f.stage.kubectl("get", "crd", "workerclusters.jobferry.dev", "-o", "json")), &crd.Object); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	settings, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if known, has := slices.Sorted(maps.Keys(settings)), slices.Sorted(maps.Keys(f.spec)); !slices.Equal(known, has) {
		t.Errorf("the CRD has the settings %v, the test %v", known, has)
	}
}
