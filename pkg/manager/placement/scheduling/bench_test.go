package scheduling

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
)

// BenchmarkMemory is what the manager holds of a worker's nodes and Pods: the Ledger's records, and what
// the scheduler reads.
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
