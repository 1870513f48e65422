package kubeversion_test

import (
	"testing"

	"github.com/jobferry/jobferry/pkg/util/kubeversion"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"v1.33.4", "1.33", "v1.33.4-eks-1a2b3c", "v1.33.4+k3s1"} {
		version, err := kubeversion.Parse(text)
		if err != nil || version.String() != "1.33" || version.IsZero() {
			t.Errorf("%s: got %s, %v", text, version, err)
		}
	}
	if version, err := kubeversion.Parse("latest"); err == nil || !version.IsZero() || version.String() != "unknown" {
		t.Errorf("latest: got %s, %v", version, err)
	}
}

func TestVersionOrder(t *testing.T) {
	ascending := []kubeversion.Version{{Major: 1, Minor: 9}, {Major: 1, Minor: 32}, {Major: 2, Minor: 0}}
	for i, a := range ascending {
		for k, b := range ascending {
			if a.Less(b) != (i < k) {
				t.Errorf("%s before %s: %t", a, b, a.Less(b))
			}
		}
	}
}
