package registration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// TokenPlaceholder stands for the token in the hub's manifests. The token doesn't exist before the
// worker's manifests are applied.
const TokenPlaceholder = "PUT-THE-TOKEN-HERE"

// Manifest converts an object for an apply: with its kind, without what only an API server writes.
func Manifest(object client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "spec", "finalizers")
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	return manifest, nil
}

// YAML writes manifests for one cluster, each after a comment that names the cluster.
func YAML(title string, manifests []*unstructured.Unstructured) (string, error) {
	var b strings.Builder
	for _, m := range manifests {
		text, err := yaml.Marshal(m.Object)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", m.GetKind(), m.GetName(), err)
		}
		fmt.Fprintf(&b, "---\n# %s\n%s", title, text)
	}
	return b.String(), nil
}
