package clusters

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestRounded(t *testing.T) {
	for in, want := range map[string]string{
		"cpu=12.5": "12500m", "cpu=12": "12", "cpu=100m": "100m",
		"memory=48Gi": "48Gi", "memory=51539607551": "51539607551", "memory=1048577Ki": "1Gi", "memory=5Ki": "5Ki",
		"nvidia.com/gpu=8": "8", "pods=110": "110",
	} {
		name, value, _ := strings.Cut(in, "=")
		got := rounded(corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(value)})
		if quantity := got[corev1.ResourceName(name)]; quantity.String() != want {
			t.Errorf("%s: %s, want %s", in, quantity.String(), want)
		}
	}
}

func TestInheritedLabels(t *testing.T) {
	got := inheritedLabels(map[string]string{
		"region": "eu", "topology.kubernetes.io/zone": "a", LabelWorkerCluster: "true",
		"app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "x",
	})
	if want := map[string]string{"region": "eu", "topology.kubernetes.io/zone": "a"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
