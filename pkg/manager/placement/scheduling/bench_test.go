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
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
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

// BenchmarkMemory is what the manager holds of a worker's nodes and Pods: the informers' objects, the
// Ledger's records, and what the scheduler reads.
func BenchmarkMemory(b *testing.B) {
	const nodes, pods = 100, 30
	for b.Loop() {
		none, some := held(nodes, 0), held(nodes, pods)
		b.ReportMetric(float64(none)/nodes, "bytes/node")
		b.ReportMetric(float64(some-none)/nodes/pods, "bytes/pod")
	}
}

// held is how much the heap grows with a worker.
func held(nodes, pods int) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := workerOf(nodes, pods)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc) //nolint:gosec // far below 2^63
}

// workerOf holds all that the manager keeps of a worker. Nothing is shared that comes from another
// object: each is read from its own bytes.
func workerOf(nodes, pods int) []any {
	ledger, bound := capacity.New(func() {}), NewPods(func() {})
	kept := []any{ledger, bound}
	for n := range nodes {
		name := fmt.Sprintf("node-%d", n)
		node := decoded(fatNode(name), &corev1.Node{})
		slim, _ := capacity.SlimNode(node)
		ledger.SetNode(slim.(*corev1.Node))
		kept = append(kept, slim)
		for p := range pods {
			pod := decoded(fatPod(fmt.Sprintf("%s-pod-%d", name, p), name, p), &corev1.Pod{})
			slim, _ := capacity.SlimPod(pod)
			bound.Set(slim.(*corev1.Pod))
			ledger.SetPod(slim.(*corev1.Pod))
			kept = append(kept, slim)
		}
	}
	return append(kept, bound.Snapshot(ledger.Free(nobody), nobody))
}

func decoded[T interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}](object, into T) T {
	data, err := object.Marshal()
	if err == nil {
		err = into.Unmarshal(data)
	}
	if err != nil {
		panic(err)
	}
	return into
}

func fatNode(name string) *corev1.Node {
	node := (&world{}).node(name, "zone=1", "disk=ssd", "kubernetes.io/os=linux")
	for i := range 15 {
		node.Labels[fmt.Sprintf("node.example.com/feature-%d", i)] = "true"
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/image-%d", i)}})
	}
	return node
}

func fatPod(name, node string, app int) *corev1.Pod {
	pod := (&world{}).pod(node, fmt.Sprintf("app.kubernetes.io/name=app-%d", app%15), "app.kubernetes.io/part-of=shop", "pod-template-hash=5d8c7b6f9")
	pod.Name, pod.UID = name, types.UID("1d4f6a3e-0000-4000-8000-"+name)
	pod = ofJob(pod, "job")
	pod.UID = types.UID("1d4f6a3e-0000-4000-8000-" + name)
	for i := range 10 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", i), Value: "value"})
	}
	pod.Status.Phase = corev1.PodRunning
	return pod
}
