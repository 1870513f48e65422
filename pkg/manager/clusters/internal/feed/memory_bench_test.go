package feed

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement"
)

// BenchmarkMemory says what the manager holds of a worker's nodes and Pods, with the Snapshot of
// the last placement.
func BenchmarkMemory(b *testing.B) {
	const nodes, pods = 100, 30
	for _, of := range []struct {
		name  string
		owner func(pod *corev1.Pod, number int)
	}{
		{"Pods of 15 services", ofService},
		{"each Pod of a Job of its own", ofItsOwnJob},
	} {
		b.Run(of.name, func(b *testing.B) {
			for b.Loop() {
				none, some := heldOf(nodes, 0, of.owner), heldOf(nodes, pods, of.owner)
				b.ReportMetric(float64(none)/nodes, "bytes/node")
				b.ReportMetric(float64(some-none)/nodes/pods, "bytes/pod")
			}
		})
	}
}

// heldOf is how much the heap grows with a worker.
func heldOf(nodes, pods int, owner func(*corev1.Pod, int)) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one frees what is unique no more
	runtime.ReadMemStats(&before)
	kept := newWorkerHeld()
	for n := range nodes {
		node := fatNode(n)
		take(kept.ofNodes, kept.nodes, node, &corev1.Node{})
		for p := range pods {
			pod := fatPod(node.Name, n*pods+p)
			owner(pod, n*pods+p)
			take(kept.ofPods, kept.pods, pod, &corev1.Pod{})
		}
	}
	kept.last = kept.store.Bound.Snapshot(kept.store.Ledger.Free(types.NamespacedName{}), types.NamespacedName{})
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc) //nolint:gosec // far below 2^63
}

// workerHeld is all that grows with a worker's nodes and Pods.
type workerHeld struct {
	store           *placement.Store
	ofNodes, ofPods *intake
	nodes           fanOut[string, *corev1.Node]
	pods            fanOut[types.UID, *corev1.Pod]
	last            *placement.Snapshot
}

func newWorkerHeld() *workerHeld {
	nothing := func() {}
	h := &workerHeld{
		store:   placement.NewStore(func(placement.Change) {}),
		ofNodes: nodeIntake(),
		ofPods:  podIntake(),
	}
	h.nodes = nodesTo(h.store, nothing)
	h.pods = podsTo(h.store, func(types.NamespacedName, types.UID) {}, nothing)
	h.ofNodes.clear()
	h.ofPods.clear()
	return h
}

// take passes an object on as it comes from the worker: no text is shared with another one.
func take[K comparable, T interface {
	object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}](through *intake, to fanOut[K, T], sent, received T) {
	data, err := sent.Marshal()
	if err == nil {
		err = received.Unmarshal(data)
	}
	if err != nil {
		panic(err)
	}
	taken, err := through.take(received)
	if err == nil {
		to.process(cache.Deltas{{Type: cache.Added, Object: taken}}, func(any) {})
	}
	if err != nil {
		panic(err)
	}
}

func fatNode(number int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", number), Labels: map[string]string{}}}
	for _, key := range []string{"kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"} {
		node.Labels[key] = fmt.Sprint("value-", number%3)
	}
	node.Labels[corev1.LabelHostname] = node.Name
	node.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "ephemeral-storage": resource.MustParse("1Ti"), "pods": resource.MustParse("110"),
	}
	for i := range 15 {
		node.Labels[fmt.Sprintf("node.example.com/feature-%d", i)] = "true"
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/image-%d", i)}})
	}
	return node
}

func fatPod(node string, number int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("team-%d", number%5), Name: fmt.Sprintf("pod-5d8c7b6f9-%05d", number),
		UID: types.UID(fmt.Sprintf("1d4f6a3e-0000-4000-8000-%012d", number)), ResourceVersion: fmt.Sprint(10_000_000 + number),
		Labels: map[string]string{"app.kubernetes.io/name": fmt.Sprint("app-", number%15), "app.kubernetes.io/part-of": "shop"},
	}}
	container := corev1.Container{Name: "main", Image: "registry.example.com/image-1"}
	container.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi")}
	for i := range 10 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", i), Value: "value"})
	}
	pod.Spec = corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{container}}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

func ofService(pod *corev1.Pod, number int) {
	pod.Labels["pod-template-hash"] = fmt.Sprint("5d8c7b6f-", number%15)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-5d8c7b6f9", Controller: ptr.To(true)}}
}

// ofItsOwnJob gives a Pod what the Job controller gives it.
func ofItsOwnJob(pod *corev1.Pod, number int) {
	name, uid := fmt.Sprintf("render-frame-%d", number), fmt.Sprintf("9a1c7e52-0000-4000-8000-%012d", number)
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		pod.Labels[prefix+"job-name"], pod.Labels[prefix+"controller-uid"] = name, uid
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
}
