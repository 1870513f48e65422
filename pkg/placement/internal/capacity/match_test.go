package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

func TestSuits(t *testing.T) {
	tolerateAll := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	tests := []struct {
		name string
		pod  corev1.PodSpec
		node corev1.NodeSpec
		want bool
	}{
		{"plain", corev1.PodSpec{}, corev1.NodeSpec{}, true},
		{"node selector", corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, corev1.NodeSpec{}, true},
		{"node selector mismatch", corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}, corev1.NodeSpec{}, false},
		{"affinity", corev1.PodSpec{Affinity: zoneIn("a", "b")}, corev1.NodeSpec{}, true},
		{"affinity mismatch", corev1.PodSpec{Affinity: zoneIn("b")}, corev1.NodeSpec{}, false},
		{"affinity that can't be read", corev1.PodSpec{Affinity: zoneIn()}, corev1.NodeSpec{}, false},
		{"node name", corev1.PodSpec{NodeName: "n"}, corev1.NodeSpec{}, true},
		{"another node's name", corev1.PodSpec{NodeName: "m"}, corev1.NodeSpec{}, false},
		{"Windows", corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, corev1.NodeSpec{}, false},
		{"Linux", corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, corev1.NodeSpec{}, true},
		{"unschedulable", corev1.PodSpec{}, corev1.NodeSpec{Unschedulable: true}, false},
		{"unschedulable, tolerated", corev1.PodSpec{Tolerations: tolerateAll}, corev1.NodeSpec{Unschedulable: true}, true},
		{"unschedulable, bound by its template", corev1.PodSpec{NodeName: "n"}, corev1.NodeSpec{Unschedulable: true}, true},
		{"tainted", corev1.PodSpec{}, taint("gpu", corev1.TaintEffectNoSchedule), false},
		{"tainted, NoExecute", corev1.PodSpec{}, taint("gpu", corev1.TaintEffectNoExecute), false},
		{"a preference only", corev1.PodSpec{}, taint("gpu", corev1.TaintEffectPreferNoSchedule), true},
		{"tainted, tolerated", corev1.PodSpec{Tolerations: tolerateAll}, taint("gpu", corev1.TaintEffectNoSchedule), true},
		{"tainted, bound by its template", corev1.PodSpec{NodeName: "n"}, taint("gpu", corev1.TaintEffectNoSchedule), true},
		{"tainted, NoExecute, bound by its template", corev1.PodSpec{NodeName: "n"}, taint("gpu", corev1.TaintEffectNoExecute), false},
		{"unschedulable by taint", corev1.PodSpec{}, taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), false},
		{"not ready", corev1.PodSpec{}, taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), false},
		{"several obstacles", corev1.PodSpec{},
			corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
				{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
			}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}, Spec: test.node,
			}
			shape := ShapeOf(&corev1.PodTemplateSpec{Spec: test.pod})
			if got := shape.Suits(node); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestTolerates holds upstream's function, as it's called here, against the rule in few words.
func TestTolerates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		toleration := corev1.Toleration{
			Key: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]corev1.TolerationOperator{
				"", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt, "x",
			}).Draw(t, "operator"),
			Value:  rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value"),
			Effect: rapid.SampledFrom([]corev1.TaintEffect{"", "NoSchedule", "NoExecute"}).Draw(t, "tolerated effect"),
		}
		taint := corev1.Taint{
			Key:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "taint"),
			Value:  rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "taint's value"),
			Effect: rapid.SampledFrom([]corev1.TaintEffect{"NoSchedule", "NoExecute"}).Draw(t, "effect"),
		}
		want := (toleration.Effect == "" || toleration.Effect == taint.Effect) && (toleration.Key == "" || toleration.Key == taint.Key)
		switch toleration.Operator {
		case "", corev1.TolerationOpEqual:
			want = want && toleration.Value == taint.Value
		case corev1.TolerationOpExists:
		default:
			want = false
		}
		shape := &Shape{tolerations: []corev1.Toleration{toleration}}
		if got := shape.tolerates(&taint); got != want {
			t.Fatalf("got %t, want %t", got, want)
		}
	})
}

func taint(key string, effect corev1.TaintEffect) corev1.NodeSpec {
	return corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: effect}}}
}

func zoneIn(zones ...string) *corev1.Affinity {
	return NodeAffinity(NodeTerm("zone", corev1.NodeSelectorOpIn, zones...))
}
