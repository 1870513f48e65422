package scheduling

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fleet is 100 workers of 100 nodes in three zones, each with 30 Pods.
func fleet() []*Snapshot {
	snapshots := make([]*Snapshot, 100)
	for i := range snapshots {
		snapshots[i] = large(100, 30)
	}
	return snapshots
}

func large(nodes, pods int) *Snapshot {
	w := &world{}
	for n := range nodes {
		name := fmt.Sprintf("node-%d", n)
		node := w.node(name, fmt.Sprintf("zone=%d", n%3), "disk=ssd", "kubernetes.io/os=linux")
		node.Status.Allocatable["cpu"] = resource.MustParse("64")
		if n%10 == 0 {
			node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
		for range pods {
			w.pod(name, "app=other", "team=red")
		}
	}
	return NewSnapshot(w.nodes, w.pods, nil)
}

// BenchmarkJudge is one Job over 100 workers of 100 nodes.
func BenchmarkJudge(b *testing.B) {
	snapshots := fleet()
	for _, row := range []struct {
		name   string
		wanted int64
		change func(*corev1.PodTemplateSpec)
	}{
		{"plain", 50, func(*corev1.PodTemplateSpec) {}},
		{"full", 1 << 20, func(*corev1.PodTemplateSpec) {}},
		{"selector", 50, func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "zone": "1"} }},
		{"spread", 10, func(p *corev1.PodTemplateSpec) {
			p.Labels["app"] = "a"
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			}}
		}},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				job := jobOf(row.change)
				for _, s := range snapshots {
					Judge(s, job, row.wanted)
				}
			}
		})
	}
}

// BenchmarkMemory is what a Snapshot holds for each node and Pod, the informer's Node object not
// counted.
func BenchmarkMemory(b *testing.B) {
	for _, pods := range []int{0, 100} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				s := large(100, pods)
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(s)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(100*max(pods, 1)), "bytes/each")
		})
	}
}
