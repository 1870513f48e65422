package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// What is short is that of which no node that suits the Job has enough; of what can run never, what
// Pods that end leave counts.
func TestShortages(t *testing.T) {
	w := &world{}
	w.node("a", "disk=ssd")
	w.node("b", "disk=ssd").Status.Allocatable["memory"] = resource.MustParse("1Gi")
	w.node("c", "disk=hdd").Status.Allocatable["example.com/gpu"] = resource.MustParse("8")
	w.pod("a")
	w.pod("b")
	w.pod("b")
	job := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("2"),
		}
	})
	s := NewSnapshot(w.nodes, w.pods, nil)
	for verdict, want := range map[Verdict][]Shortage{
		FitsNow:   nil,
		FitsLater: {{"cpu", 4000, 3000}, {"example.com/gpu", 2, 0}},
		Never:     {{"example.com/gpu", 2, 0}},
	} {
		if diff := cmp.Diff(want, Shortages(s, job, verdict)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", verdict, diff)
		}
	}
	nowhere := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "tape"} })
	if got := Shortages(s, nowhere, Never); got != nil {
		t.Errorf("%v of no node", got)
	}
}

// Reasons of the API server, and of all nodes together, count no nodes.
func TestReasonsThatAreNotOfNodes(t *testing.T) {
	f := filling{reasons: []*Reason{{Plugin: "ResourceQuota"}, &tooFew, obstacles[capacity.Tainted], obstacles[capacity.Tainted]}}
	got := map[string]int{}
	for _, c := range f.counts() {
		got[c.Plugin] = c.Nodes
	}
	if diff := cmp.Diff(map[string]int{"ResourceQuota": 0, "GangScheduling": 0, "TaintToleration": 2}, got); diff != "" {
		t.Error(diff)
	}
}
