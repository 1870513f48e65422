package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// Pods that want one of many nodes count for more: to compare a node with them takes as much
// longer.
func TestManyTermsCountAsManyComparisons(t *testing.T) {
	work := func(count int) int {
		terms := make([]corev1.NodeSelectorTerm, count)
		for i := range terms {
			terms[i] = NodeTerm("k", corev1.NodeSelectorOpIn, fmt.Sprint(i))
		}
		return ShapeOf(requiring(terms...)).work
	}
	if few, many := work(1), work(100); many < 50*few {
		t.Errorf("100 terms count as %d comparisons, one as %d", many, few)
	}
}

// Where nodes have taints, each toleration is compared with each of them: that counts, too.
func TestTolerationsOfTaintsCount(t *testing.T) {
	const nodes, taints, jobs = 1000, 30, 300
	left := func(tolerations int) int {
		s := newStory(t, NewNode("gone").Has("cpu", "100k", "pods", "100k"))
		job := func(i int) *JobBuilder {
			j := NewJob(fmt.Sprint(i)).Requests("cpu", fmt.Sprintf("%dm", 2000+i))
			for k := range tolerations {
				j.Tolerates(fmt.Sprint("other-", k))
			}
			return j
		}
		for i := range jobs {
			j := job(i)
			s.Reserve(j.Key(), shape(j), 1)
		}
		for i := range nodes {
			node := NewNode(fmt.Sprintf("n%05d", i)).Has("cpu", "1", "pods", "110")
			for k := range taints {
				node.Taint(fmt.Sprint("taint-", k), corev1.TaintEffectNoSchedule)
			}
			s.SetNode(node.Obj())
		}
		s.Continue()
		s.DeleteNode("gone")
		work := s.Work(shape(job(0)))
		if want := nodes * (1 + taints*tolerations/tolerationsPerWork); work != want {
			t.Errorf("%d tolerations: all nodes are %d comparisons, want %d", tolerations, work, want)
		}
		for i := range nodes {
			s.DeleteNode(fmt.Sprintf("n%05d", i))
		}
		if work := s.Work(shape(job(0))); work != 0 {
			t.Errorf("%d comparisons are left without nodes", work)
		}
		return s.countPending()
	}
	if few, many := left(0), left(20); few > 0 || many < jobs/2 {
		t.Errorf("%d and %d are left to the next change", few, many)
	}
}

// By what is compared again and again, a Pod and a node say little, whatever they have.
func TestLightShapes(t *testing.T) {
	values, tolerations := make([]string, 4_900), make([]corev1.Toleration, 312)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	for i := range tolerations {
		tolerations[i] = corev1.Toleration{Key: fmt.Sprint("key-", i), Operator: corev1.TolerationOpExists}
	}
	selector := map[string]string{}
	for i := range 300 {
		selector[fmt.Sprint("key-", i)] = "value"
	}
	for name, spec := range map[string]corev1.PodSpec{
		"values":      {Affinity: NodeAffinity(NodeTerm("k", corev1.NodeSelectorOpNotIn, values...))},
		"tolerations": {Tolerations: tolerations},
		"a selector":  {NodeSelector: selector},
	} {
		ofPod := shapeOfPod(&corev1.Pod{Spec: spec})
		for _, s := range []*Shape{LightShapeOf(&corev1.PodTemplateSpec{Spec: spec}), ofPod} {
			if s.work > 32 || len(s.tolerations) > 32 {
				t.Errorf("%s: a comparison counts as %d, with %d tolerations", name, s.work, len(s.tolerations))
			}
			if full := ShapeOf(&corev1.PodTemplateSpec{Spec: spec}); full.Key() == s.Key() {
				t.Errorf("%s: it's judged without that, too", name)
			}
		}
	}
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: make([]corev1.Taint, 6_000)}}
	if slim, err := SlimNode(node); err != nil || len(slim.(*corev1.Node).Spec.Taints) != maxTaints {
		t.Errorf("%d taints of a node are held, %v", len(slim.(*corev1.Node).Spec.Taints), err)
	}
}
