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
