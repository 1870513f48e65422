package scheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// manyNodes are 1,000 that differ in what is free.
func manyNodes() *Snapshot {
	w := &world{}
	for i := range 1000 {
		name := fmt.Sprintf("n%03d", i)
		w.node(name, fmt.Sprintf("zone=%d", i%3), fmt.Sprintf("rack=%d", i%50)).Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("96"), "memory": resource.MustParse("768Gi"), "pods": resource.MustParse("110"), "gpu.com/gpu": resource.MustParse("8"),
		}
		for range i % 40 {
			w.pod(name, "app=other")
		}
	}
	return NewSnapshot(w.nodes, w.pods, nil)
}

func BenchmarkGroup(b *testing.B) {
	s := manyNodes()
	for name, kinds := range map[string][]kindOfPods{
		"resources": {pod("a", 1, "2"), pod("b", 500, "8", withGPUs("1")), pod("c", 100, "4"), pod("d", 20, "30")},
		"affinity": {
			pod("a", 1, "2"), pod("b", 100, "8", near("a", "zone")), pod("c", 100, "4", near("c", "rack"), awayFrom("d", "rack")),
			pod("d", 20, "4", near("d", "rack"), awayFrom("c", "rack")),
		},
		"spread": {pod("a", 1, "2"), pod("b", 50, "8", spread("b", "zone")), pod("c", 100, "4", spread("c", "rack")), pod("d", 10, "30")},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			g := asking(kinds, 0)
			left := *g.own.left
			for b.Loop() {
				*g.own.left = left
				if a := g.Judge(s, kinds[0].pods); a.Verdict != FitsNow {
					b.Fatalf("%+v\n%+v", a, a.Mate)
				}
			}
			b.ReportMetric(g.own.Work()*100, "%work")
		})
	}
}
