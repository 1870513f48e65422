package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestLabelSetIsTheMap(t *testing.T) {
	for _, set := range []labels.Set{nil, {"a": "1"}, {"a": "1", "ab": "2", "example.com/a": ""}} {
		s := labelSetOf(set)
		for _, key := range []string{"a", "ab", "b", "example.com/a", "1", ""} {
			value, has := s.Lookup(key)
			wantValue, want := set.Lookup(key)
			if value != wantValue || has != want || s.Has(key) != want || s.Get(key) != wantValue {
				t.Errorf("%v: label %q is %q, %v; want %q, %v", set, key, value, has, wantValue, want)
			}
		}
	}
}

func TestPodsOfOneKindAreCountedTogether(t *testing.T) {
	w := &world{}
	w.node("a")
	w.pod("a", "app=a", "tier=1")
	w.pod("a", "tier=1", "app=a")
	w.pod("a", "app=a")
	w.pod("a", "app=a").Namespace = "other"
	w.pod("a", "app=a").Spec.RestartPolicy = corev1.RestartPolicyAlways
	kinds := NewSnapshot(w.nodes, w.pods, nil).Nodes[0].kinds
	counts := make([]int32, len(kinds))
	for i := range kinds {
		counts[i] = kinds[i].count
	}
	if len(counts) != 4 || counts[0] != 2 || counts[1]+counts[2]+counts[3] != 3 {
		t.Errorf("counts %v, want 2, 1, 1, 1", counts)
	}
}
