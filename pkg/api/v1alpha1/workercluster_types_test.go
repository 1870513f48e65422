package v1alpha1

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// node is what is read of a schema in a CRD.
type node struct {
	Properties map[string]node `json:"properties"`
	MaxItems   int             `json:"maxItems"`
}

// The API server takes as many Stockouts as the manager writes.
func TestMaxStockouts(t *testing.T) {
	file, err := os.ReadFile("../../../config/crd/jobferry.dev_workerclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema node `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(file, &crd); err != nil {
		t.Fatal(err)
	}
	for _, version := range crd.Spec.Versions {
		got := version.Schema.OpenAPIV3Schema.Properties["status"].Properties["stockouts"].MaxItems
		if got != MaxStockouts {
			t.Errorf("the CRD allows %d, and MaxStockouts is %d", got, MaxStockouts)
		}
	}
	if len(crd.Spec.Versions) == 0 {
		t.Error("the CRD has no versions")
	}
}
