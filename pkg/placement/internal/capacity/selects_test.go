package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A selector selects the same labels as the one that upstream makes of it, and none if that can't.
func TestSelectorsSelectAsUpstreamsDo(t *testing.T) {
	keys := rapid.SampledFrom([]string{"a", "b/c", "", "a/b/c", "-"})
	values := rapid.SampledFrom([]string{
		"x", "1", "x.y-z_1", "", "-x", "x-", "x y", "é", "x\n", strings.Repeat("x", 63), strings.Repeat("x", 64),
	})
	operators := []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "", "in"}
	expression := rapid.Custom(func(t *rapid.T) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{
			Key: keys.Draw(t, "key"), Operator: rapid.SampledFrom(operators).Draw(t, "operator"), Values: rapid.SliceOfN(values, 0, 2).Draw(t, "values"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		s := &metav1.LabelSelector{
			MatchLabels:      rapid.MapOfN(keys, values, 0, 1).Draw(t, "labels"),
			MatchExpressions: rapid.SliceOfN(expression, 0, 2).Draw(t, "expressions"),
		}
		own := rapid.MapOfN(keys, values, 0, 3).Draw(t, "own")
		selector, err := metav1.LabelSelectorAsSelector(s)
		if got, want := selects(s, own), err == nil && selector.Matches(labels.Set(own)); got != want {
			t.Fatalf("selects: %v, and upstream says %v, %v", got, want, err)
		}
	})
}

// Whether Pods can be beside each other is read of the terms that are judged, and costs little for
// each value.
func TestAntiAffinityToItselfIsCheap(t *testing.T) {
	byHostname := func(values ...string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}},
		}}
	}
	many := func(n int) corev1.PodAffinityTerm {
		values := []string{"own"}
		for i := range n {
			values = append(values, fmt.Sprint(i))
		}
		return byHostname(values...)
	}
	others := slices.Repeat([]corev1.PodAffinityTerm{byHostname("other")}, MaxTerms)
	for name, test := range map[string]struct {
		terms []corev1.PodAffinityTerm
		want  bool
	}{
		"the last that is judged": {append(slices.Clone(others[1:]), many(4_500)), true},
		"behind it":               {append(slices.Clone(others), many(100_000)), false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "own"}}}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: test.terms}}
		if got := shapeOfPod(pod).OnePerNode(); got != test.want {
			t.Errorf("%s: one per node: %v", name, got)
		}
		if cost := costtest.Of(func() { shapeOfPod(pod) }); cost > 192<<10 {
			t.Errorf("%s: %d KiB are made of it", name, cost>>10)
		}
	}
}
