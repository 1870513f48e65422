package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What a newer plugin has applied stays; what the user takes back goes, and what others set stays
// theirs.
func TestKeepUnknown(t *testing.T) {
	for name, row := range map[string]struct{ manifest, present, want string }{
		"settings": {
			`{kind: WorkerCluster, spec: {kubeconfigSecret: west}}`,
			`{kind: WorkerCluster, spec: {kubeconfigSecret: west, carry: [Secret], later: {a: [1]}, theirs: 1}, metadata: {managedFields: [
                {manager: somebody, operation: Apply, fieldsV1: {"f:spec": {"f:theirs": {}}}},
                {manager: kubectl-jobferry, operation: Update, fieldsV1: {"f:spec": {"f:theirs": {}}}},
                {manager: kubectl-jobferry, operation: Apply, fieldsV1: {"f:spec": {"f:kubeconfigSecret": {}, "f:carry": {}, "f:later": {}, "f:gone": {}}}}]}}`,
			`{kind: WorkerCluster, spec: {kubeconfigSecret: west, later: {a: [1]}}}`,
		},
		"annotations": {
			`{kind: Secret, metadata: {name: west, annotations: {jobferry.dev/account: b}}}`,
			`{kind: Secret, metadata: {name: west, annotations: {jobferry.dev/account: a, jobferry.dev/token-duration: 1h, jobferry.dev/later: x}, managedFields: [
                {manager: kubectl-jobferry, operation: Apply,
                    fieldsV1: {"f:metadata": {"f:annotations": {"f:jobferry.dev/account": {}, "f:jobferry.dev/token-duration": {}, "f:jobferry.dev/later": {}}}}}]}}`,
			`{kind: Secret, metadata: {name: west, annotations: {jobferry.dev/account: b, jobferry.dev/later: x}}}`,
		},
		"another kind": {
			`{kind: ServiceAccount, metadata: {name: a}}`,
			`{kind: ServiceAccount, metadata: {name: a, annotations: {b: c}, managedFields: [
                {manager: kubectl-jobferry, operation: Apply, fieldsV1: {"f:metadata": {"f:annotations": {"f:b": {}}}}}]}}`,
			`{kind: ServiceAccount, metadata: {name: a}}`,
		},
		"nothing applied yet": {
			`{kind: WorkerCluster, spec: {kubeconfigSecret: west}}`,
			`{kind: WorkerCluster, spec: {kubeconfigSecret: west, weight: 2}}`,
			`{kind: WorkerCluster, spec: {kubeconfigSecret: west}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := object(t, row.manifest)
			if err := KeepUnknown(manifest, object(t, row.present)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, row.want).Object, manifest.Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}
