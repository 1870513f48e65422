package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Selectors that are asked about kinds of Pods, and about the Pods' own labels, select the Pods
// that they would select one by one.
func TestKindsAreSelectedAsTheirPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		for _, name := range []string{"a", "b"} {
			w.node(name)
		}
		for range rapid.IntRange(0, 8).Draw(t, "pods") {
			pod := anyPod(t, w)
			pod.Namespace = rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace")
			if rapid.Bool().Draw(t, "lasts") {
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
		}
		v := view{NewSnapshot(w.nodes, w.pods, nil), Now, nil}
		var required []corev1.PodAffinityTerm
		for range rapid.IntRange(1, 2).Draw(t, "terms") {
			required = append(required, corev1.PodAffinityTerm{LabelSelector: anySelector(t)})
		}
		terms := termsOf("ns", labels.Set{}, required)

		got, want := map[string]int{}, map[string]int{}
		v.eachOf(v.selectBy(affinityField, yes, terms...), func(node int, k *kindCount) { got[v.Nodes[node].Object.Name] += int(k.count) })
		for _, pod := range w.pods {
			matches := !capacity.Ended(pod) && (pod.Spec.NodeName == "a" || pod.Spec.NodeName == "b")
			for i := range terms {
				matches = matches && terms[i].covers(pod.Namespace, nil) == yes && terms[i].selector.Matches(labels.Set(pod.Labels))
			}
			if matches {
				want[pod.Spec.NodeName]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func anySelector(t *rapid.T) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	for range rapid.IntRange(0, 3).Draw(t, "requirements") {
		selector.MatchExpressions = append(selector.MatchExpressions, rapid.SampledFrom([]metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"x"}},
			{Key: "app", Operator: metav1.LabelSelectorOpExists},
			{Key: "job-name", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}},
			{Key: "job-name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}},
			{Key: "controller-uid", Operator: metav1.LabelSelectorOpDoesNotExist},
			{Key: "controller-uid", Operator: metav1.LabelSelectorOpExists},
		}).Draw(t, "requirement"))
	}
	return selector
}
