package scheduling

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fleet is 100 workers of 100 nodes in three zones, each with 30 Pods of 15 applications, of which a
// third is in the Job's namespace.
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
		for i := range pods {
			pod := w.pod(name, fmt.Sprintf("app=app-%d", i%15), "team=red")
			if i%3 > 0 {
				pod.Namespace = fmt.Sprintf("other-%d", i%5)
			}
		}
	}
	return NewSnapshot(w.nodes, w.pods, nil)
}

// question is a Job of a benchmark.
type question struct {
	name string
	// share of such Jobs among those that BenchmarkMix places, in percent.
	share  int
	wanted int64
	change func(*corev1.PodTemplateSpec)
}

var questions = []question{
	{"plain", 50, 50, func(*corev1.PodTemplateSpec) {}},
	{"full", 9, 1 << 20, func(*corev1.PodTemplateSpec) {}},
	{"selector", 20, 50, func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "zone": "1"} }},
	{"spread", 10, 10, func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone") }},
	{"spread over nodes", 3, 50, func(p *corev1.PodTemplateSpec) { spreadOver(p, corev1.LabelHostname) }},
	{"spread over both", 3, 50, func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone", corev1.LabelHostname) }},
	{"anti-affinity", 4, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: alike(p, corev1.LabelHostname),
		}}
	}},
	{"affinity", 1, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: alike(p, "zone"),
		}}
	}},
}

func spreadOver(p *corev1.PodTemplateSpec, keys ...string) {
	p.Labels["app"] = "app-0"
	for _, key := range keys {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 3, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}},
		})
	}
}

func alike(p *corev1.PodTemplateSpec, key string) []corev1.PodAffinityTerm {
	p.Labels["app"] = "new"
	return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "new"}}}}
}

func (q *question) ask(snapshots []*Snapshot) {
	job := jobOf(q.change)
	for _, s := range snapshots {
		Judge(s, job, q.wanted)
	}
}

// BenchmarkJudge is one Job over 100 workers of 100 nodes.
func BenchmarkJudge(b *testing.B) {
	snapshots := fleet()
	for _, q := range questions {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.ask(snapshots)
			}
		})
	}
}

// BenchmarkMix is many Jobs over 100 workers of 100 nodes, one after the other.
func BenchmarkMix(b *testing.B) {
	snapshots := fleet()
	var mix []question
	for _, q := range questions {
		for range q.share {
			mix = append(mix, q)
		}
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		q := mix[len(took)*37%len(mix)]
		began := time.Now()
		q.ask(snapshots)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-median")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
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
