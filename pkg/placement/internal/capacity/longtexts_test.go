package capacity

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A worker sends a Pod with one text of megabytes. What says on which nodes it fits takes little
// more than the text.
func TestShapesOfLongTexts(t *testing.T) {
	const most = 16 << 20
	for _, part := range []string{"/", "<", "a"} {
		long := strings.Repeat(part, 4<<20)
		node := func(key, value string) *corev1.Affinity {
			return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
				}}},
			}}}
		}
		itself := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: long, Operator: metav1.LabelSelectorOpDoesNotExist}}}
		for name, spec := range map[string]corev1.PodSpec{
			"node selector":     {NodeSelector: map[string]string{"a": long}},
			"key of affinity":   {Affinity: node(long, "a")},
			"value of affinity": {Affinity: node("a", long)},
			"toleration":        {Tolerations: []corev1.Toleration{{Key: "a", Value: long}}},
			"operating system":  {OS: &corev1.PodOS{Name: corev1.OSName(long)}},
			"anti-affinity": {Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: itself}},
			}}},
		} {
			if cost := costtest.Of(func() { shapeOfPod(&corev1.Pod{Spec: spec}) }); cost > most {
				t.Errorf("%s of %q: %d MiB are made of it", name, part, cost>>20)
			}
		}
	}
}

// No resource has a name of megabytes: it would be looked up in each node.
func TestLongNamesOfResources(t *testing.T) {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), "example.com/gpu": resource.MustParse("1")}
	for i := range 4 {
		list[corev1.ResourceName(fmt.Sprint("a/", i, strings.Repeat("a", 64)))] = resource.MustParse("1")
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}}}
	of := map[string]Resources{
		"Job": ShapeOf(&corev1.PodTemplateSpec{Spec: pod.Spec}).Unit(), "Pod": PodRequests(pod), "node": ResourcesOf(listed(list)),
	}
	for name, r := range of {
		if len(r.Others) != 1 || r.Others["example.com/gpu"] != 1 || r.MilliCPU != 1000 {
			t.Errorf("%s: it has %d of them, and %d of a CPU", name, len(r.Others), r.MilliCPU)
		}
	}
}
