package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// Nodes of which one stands for all are those that each would get the same answer.
func TestAlikeNodesGetOneAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			anyNode(t, w, name)
		}
		job := jobOf(func(p *corev1.PodTemplateSpec) { anyNodeChoice(t, &p.Spec) })
		v := view{NewSnapshot(w.nodes, nil, nil), rapid.SampledFrom([]Moment{Now, Idle, Ever}).Draw(t, "moment"), nil}
		suits := job.suits(v)
		for i := range v.Nodes {
			p := newPlace(v, i)
			if got, want := suits(&p), obstacles[job.shape.Obstacle(p.node.Object, v.moment == Ever)]; got != want {
				t.Errorf("node %s: %v, want %v", v.Nodes[i].Object.Name, got, want)
			}
		}
	})
}

func anyNode(t *rapid.T, w *world, name string) {
	node := w.node(name, "zone="+rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone"), "disk="+rapid.SampledFrom([]string{"1", "20"}).Draw(t, "disk"))
	if rapid.Bool().Draw(t, "unlabelled") {
		delete(node.Labels, "disk")
	}
	if rapid.IntRange(0, 3).Draw(t, "os") == 0 {
		node.Labels[corev1.LabelOSStable] = string(corev1.Windows)
	}
	node.Spec.Unschedulable = rapid.IntRange(0, 4).Draw(t, "cordoned") == 0
	for _, key := range []string{"dedicated", corev1.TaintNodeNotReady} {
		if rapid.IntRange(0, 3).Draw(t, key) == 0 {
			value := rapid.SampledFrom([]string{"", "a"}).Draw(t, "value")
			effect := rapid.SampledFrom([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}).Draw(t, "effect")
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
		}
	}
}

func anyNodeChoice(t *rapid.T, spec *corev1.PodSpec) {
	if rapid.Bool().Draw(t, "tolerates") {
		spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "a"}}
	}
	if rapid.Bool().Draw(t, "selects") {
		spec.NodeSelector = map[string]string{"zone": "x"}
	}
	if rapid.Bool().Draw(t, "has an os") {
		spec.OS = &corev1.PodOS{Name: rapid.SampledFrom([]corev1.OSName{corev1.Linux, corev1.Windows}).Draw(t, "os")}
	}
	if rapid.IntRange(0, 5).Draw(t, "names") == 0 {
		spec.NodeName = "b"
	}
	required := &corev1.NodeSelector{}
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			rapid.SampledFrom([]corev1.NodeSelectorRequirement{
				{Key: "disk", Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}},
				{Key: "disk", Operator: corev1.NodeSelectorOpDoesNotExist},
				{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"x"}},
			}).Draw(t, "expression"),
		}}
		if rapid.IntRange(0, 3).Draw(t, "fields") == 0 {
			term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"c"}}}
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
	if len(required.NodeSelectorTerms) > 0 {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
}
