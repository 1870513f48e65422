package registration

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// applied are the fields that the last apply of a registration set, as managedFields lists them.
type applied struct {
	Metadata struct {
		Annotations map[string]json.RawMessage `json:"f:annotations"`
	} `json:"f:metadata"`
	Spec map[string]json.RawMessage `json:"f:spec"`
}

// KeepUnknown adds to a manifest what a newer plugin has applied to the present object and this one
// doesn't know: settings of a WorkerCluster, and annotations of a Secret. An apply removes what the
// one before set and it doesn't.
func KeepUnknown(manifest, present *unstructured.Unstructured) error {
	was, err := appliedTo(present)
	if err != nil {
		return err
	}
	switch manifest.GetKind() {
	case "WorkerCluster":
		keep(manifest, present, was.Spec, specFields, "spec")
	case "Secret":
		keep(manifest, present, was.Metadata.Annotations, secretAnnotations, "metadata", "annotations")
	}
	return nil
}

// appliedTo returns what this plugin, or another version of it, has applied.
func appliedTo(present *unstructured.Unstructured) (was applied, err error) {
	for _, entry := range present.GetManagedFields() {
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			return was, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &was)
		}
	}
	return was, nil
}

// keep copies the applied fields of a map that aren't known.
func keep(manifest, present *unstructured.Unstructured, applied map[string]json.RawMessage, known map[string]bool, path ...string) {
	from, _, _ := unstructured.NestedMap(present.Object, path...)
	for field := range applied {
		name := strings.TrimPrefix(field, "f:")
		if value, there := from[name]; there && !known[name] {
			// it fails only if a parent is no object
			_ = unstructured.SetNestedField(manifest.Object, value, append(slices.Clone(path), name)...)
		}
	}
}

// specFields are the settings that this build knows.
var specFields = fieldsOf(reflect.TypeFor[v1alpha1.WorkerClusterSpec]())

func fieldsOf(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

// secretAnnotations are those that Request.Secret sets, or leaves out for a reason.
var secretAnnotations = map[string]bool{
	v1alpha1.AnnotationAccount:       true,
	v1alpha1.AnnotationPodAccess:     true,
	v1alpha1.AnnotationNamespaces:    true,
	v1alpha1.AnnotationHubOrigin:     true,
	v1alpha1.AnnotationTokenDuration: true,
}
