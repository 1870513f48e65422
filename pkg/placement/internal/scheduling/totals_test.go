package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Nodes on which the Job's Pods may not be don't count, full ones do.
func TestTotals(t *testing.T) {
	w := &world{}
	w.node("a", "disk=ssd").Status.Allocatable["example.com/gpu"] = resource.MustParse("2")
	w.node("b", "disk=ssd")
	w.node("c", "disk=hdd")
	w.node("d", "disk=ssd").Spec.Unschedulable = true
	w.pod("a")
	for range 4 {
		w.pod("b")
	}
	job := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	})
	got := map[corev1.ResourceName]Total{}
	for _, total := range Totals(NewSnapshot(w.nodes, w.pods, nil), job) {
		got[total.Name] = total
	}
	for _, want := range []Total{
		{"pods", 1, 215, 220}, {"cpu", 1000, 3000, 8000}, {"memory", 0, 0, 0}, {"example.com/gpu", 1, 2, 2},
	} {
		if got[want.Name] != want {
			t.Errorf("%s: %+v, want %+v", want.Name, got[want.Name], want)
		}
	}
}

// What is kept for one Job isn't another one's: they read other labels, or tolerate other taints.
func TestTotalsOfEachJob(t *testing.T) {
	w := &world{}
	w.node("a", "disk=ssd", "zone=1")
	w.node("b", "disk=hdd", "zone=1")
	w.node("c", "disk=ssd", "zone=2").Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	s := NewSnapshot(w.nodes, w.pods, nil)
	for _, c := range []struct {
		change func(*corev1.PodTemplateSpec)
		nodes  float64
	}{
		{func(*corev1.PodTemplateSpec) {}, 2},
		{func(p *corev1.PodTemplateSpec) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, 3},
		{func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, 1},
		{func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} }, 1},
		{func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"zone": "1"} }, 2},
		{func(p *corev1.PodTemplateSpec) { p.Spec.NodeName = "c" }, 1},
	} {
		job := jobOf(c.change)
		for range 2 {
			if got := Totals(s, job)[0].Allocatable / 110; got != c.nodes {
				t.Errorf("selector %v of node %q: %v nodes, want %v", job.spec.NodeSelector, job.spec.NodeName, got, c.nodes)
			}
		}
	}
}
