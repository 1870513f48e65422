package capacity

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

func requiring(terms ...corev1.NodeSelectorTerm) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: NodeAffinity(terms...)}}
}

// What is left out can't be parsed, and the others select the same nodes as before.
func TestInvalidTermsAreLeftOut(t *testing.T) {
	operators := []corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "in"}
	requirement := rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{
			Key:      rapid.SampledFrom([]string{"a", "b/c", "metadata.name", "", "a/b/c", "-", strings.Repeat("a", 64)}).Draw(t, "key"),
			Operator: rapid.SampledFrom(operators).Draw(t, "operator"),
			Values:   rapid.SliceOfN(rapid.SampledFrom([]string{"x", "1", "2", "-1", "", "*", "node", "9223372036854775808"}), 0, 2).Draw(t, "values"),
		}
	})
	requirements := rapid.SliceOfN(requirement, 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		var terms []corev1.NodeSelectorTerm
		for range rapid.IntRange(0, 3).Draw(t, "terms") {
			term := corev1.NodeSelectorTerm{MatchExpressions: requirements.Draw(t, "expressions"), MatchFields: requirements.Draw(t, "fields")}
			_, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
			if got := isInvalid(term); got != (err != nil) {
				t.Fatalf("%+v: invalid: %v, and its parser says %v", term, got, err)
			}
			terms = append(terms, term)
		}
		pod := &corev1.Pod{Spec: requiring(terms...).Spec}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{
			"a": rapid.SampledFrom([]string{"x", "1", "2", ""}).Draw(t, "a"),
		}}}
		want, _ := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
		required := requiredOf(&pod.Spec)
		if got, err := required.Match(node); got != want || err != nil {
			t.Fatalf("selects: %v, %v, want %v", got, err, want)
		}
	})
}

// A tenant's terms with many invalid values are read once, and cost nothing for each node.
func TestInvalidTermsAreCheap(t *testing.T) {
	var values []string
	for i := range 4_500 {
		values = append(values, fmt.Sprint("-", i))
	}
	template := requiring(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "a", Operator: corev1.NodeSelectorOpIn, Values: values},
	}})
	const nodes, most = 100, 4 << 20
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"a": "x"}}}
	var before, made, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := ShapeOf(template)
	runtime.ReadMemStats(&made)
	for range nodes {
		if s.Selects(node) {
			t.Fatal("an invalid term selects a node")
		}
	}
	runtime.ReadMemStats(&after)
	perNode := (after.TotalAlloc - made.TotalAlloc) / nodes
	if made.TotalAlloc-before.TotalAlloc > most || perNode > 1<<10 {
		t.Errorf("%d KiB are allocated once, and %d KiB for each node", (made.TotalAlloc-before.TotalAlloc)>>10, perNode>>10)
	}
}

// Numbers are read again for each node, and what isn't one costs an error: such a requirement
// weighs more than one with a value.
func TestNumbersAreWeighed(t *testing.T) {
	const terms, nodes, bytesForOne = 50, 100, 4
	template := requiring(slices.Repeat([]corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "a", Operator: corev1.NodeSelectorOpGt, Values: []string{"1"}},
	}}}, terms)...)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"a": strings.Repeat("x", 63)}}}
	s, work := ShapeOf(template), NodeWorkOf(&template.Spec)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range nodes {
		s.Selects(node)
	}
	runtime.ReadMemStats(&after)
	if perNode := int(after.TotalAlloc-before.TotalAlloc) / nodes; perNode > bytesForOne*work.On(node) { //nolint:gosec // it's small
		t.Errorf("%d bytes are allocated for each node, and the work is %d", perNode, work.On(node))
	}
}
