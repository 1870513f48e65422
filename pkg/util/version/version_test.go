package version

import (
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

func TestChoose(t *testing.T) {
	for _, row := range []struct{ release, module, want string }{
		{"v1.2.3", "v0.0.0-20261122081930-a2981d157604", "v1.2.3"},
		{"", "v0.0.0-20261122081930-a2981d157604+dirty", "v0.0.0-20261122081930-a2981d157604+dirty"},
		{"", "v1.2.3", "v1.2.3"}, // go install …@v1.2.3
		{"", "(devel)", "v0.0.0-dev"},
		{"", "", "v0.0.0-dev"},
	} {
		if got := choose(row.release, row.module); got != row.want {
			t.Errorf("choose(%q, %q) = %q, want %q", row.release, row.module, got, row.want)
		}
	}
}

func TestGetIsASemanticVersion(t *testing.T) {
	if _, err := utilversion.ParseSemantic(Get()); err != nil {
		t.Errorf("%q: %v", Get(), err)
	}
}
