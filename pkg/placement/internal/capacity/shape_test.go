package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// spec changes the template of a Job.
func spec(change func(*corev1.PodSpec)) func(*batchv1.Job) {
	return func(job *batchv1.Job) { change(&job.Spec.Template.Spec) }
}

func requests(pairs ...string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: Quantities(pairs...)}
}

func limits(pairs ...string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: Quantities(pairs...)}
}

func TestUnit(t *testing.T) {
	always := ptr.To(corev1.ContainerRestartPolicyAlways)
	tests := []struct {
		name   string
		change func(*corev1.PodSpec)
		want   Resources
	}{
		{"nothing", func(*corev1.PodSpec) {}, Resources{Pods: 1}},
		{"containers add up", func(p *corev1.PodSpec) {
			p.Containers = []corev1.Container{{Resources: requests("cpu", "1", "memory", "1k")}, {Resources: requests("cpu", "250m")}}
		}, Resources{MilliCPU: 1250, Memory: 1000, Pods: 1}},
		{"every kind of resource", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = requests("ephemeral-storage", "1k", "hugepages-2Mi", "4Mi", "nvidia.com/gpu", "2")
		}, Resources{EphemeralStorage: 1000, Pods: 1, Others: map[corev1.ResourceName]int64{
			"hugepages-2Mi": 4 << 20, "nvidia.com/gpu": 2,
		}}},
		{"init containers run one after the other, before", func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Resources: requests("cpu", "3")}, {Resources: requests("cpu", "2")}}
			p.Containers[0].Resources = requests("cpu", "1", "memory", "1k")
		}, Resources{MilliCPU: 3000, Memory: 1000, Pods: 1}},
		{"sidecars stay", func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{
				{Resources: requests("cpu", "1"), RestartPolicy: always}, {Resources: requests("cpu", "2")},
			}
			p.Containers[0].Resources = requests("cpu", "500m")
		}, Resources{MilliCPU: 3000, Pods: 1}},
		{"overhead comes on top", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = requests("cpu", "1")
			p.Overhead = Quantities("cpu", "100m", "memory", "1k")
		}, Resources{MilliCPU: 1100, Memory: 1000, Pods: 1}},
		{"limits stand in for requests", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = limits("cpu", "2", "memory", "1k")
			p.Containers[0].Resources.Requests = Quantities("cpu", "1")
			p.InitContainers = []corev1.Container{{Resources: limits("cpu", "3")}}
		}, Resources{MilliCPU: 3000, Memory: 1000, Pods: 1}},
		{"the Pod's requests replace the containers'", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = requests("cpu", "1", "nvidia.com/gpu", "1")
			p.Resources = ptr.To(requests("cpu", "4"))
		}, Resources{MilliCPU: 4000, Pods: 1, Others: map[corev1.ResourceName]int64{"nvidia.com/gpu": 1}}},
		{"the Pod's limits stand in for requests", func(p *corev1.PodSpec) {
			p.Resources = ptr.To(limits("cpu", "4"))
		}, Resources{MilliCPU: 4000, Pods: 1}},
		{"but not for those of containers", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = requests("cpu", "1")
			p.Resources = ptr.To(limits("cpu", "4", "memory", "1k"))
		}, Resources{MilliCPU: 1000, Memory: 1000, Pods: 1}},
		{"fractions round up", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = requests("cpu", "100u", "memory", "100m")
		}, Resources{MilliCPU: 1, Memory: 1, Pods: 1}},
		{"absurd amounts are bounded", func(p *corev1.PodSpec) {
			p.Containers[0].Resources = requests("cpu", "8E", "memory", "1000000E")
		}, Resources{MilliCPU: 1 << 53, Memory: 1 << 53, Pods: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := NewJob("j").With(spec(test.change))
			before := job.Obj().DeepCopy()
			if diff := cmp.Diff(test.want, shape(job).Unit()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, job.Obj()); diff != "" {
				t.Errorf("changed the Job:\n%s", diff)
			}
		})
	}
}

func TestKey(t *testing.T) {
	plain := func() *JobBuilder { return NewJob("j").Requests("cpu", "1", "memory", "1Gi") }
	same := map[string]*JobBuilder{
		"another name":     NewJob("other").Requests("cpu", "1", "memory", "1Gi"),
		"another notation": NewJob("j").Requests("memory", "1024Mi", "cpu", "1000m"),
		"more Pods":        plain().Pods(7),
		"another image":    plain().With(spec(func(p *corev1.PodSpec) { p.Containers[0].Image = "other" })),
	}
	for name, job := range same {
		if shape(job).key != shape(plain()).key {
			t.Errorf("%s makes a difference", name)
		}
	}
	different := map[string]*JobBuilder{
		"plain":         plain(),
		"requests":      NewJob("j").Requests("cpu", "2", "memory", "1Gi"),
		"node selector": plain().NodeSelector("a", "b"),
		"tolerations":   plain().Tolerates("gpu"),
		"one per node":  plain().OnePerNode(),
		"node name":     plain().With(spec(func(p *corev1.PodSpec) { p.NodeName = "n" })),
		"affinity":      plain().With(spec(func(p *corev1.PodSpec) { p.Affinity = zoneIn("a") })),
		"affinity, too": plain().With(spec(func(p *corev1.PodSpec) { p.Affinity = zoneIn("b") })),
	}
	seen := map[string]string{}
	for name, job := range different {
		if other, ok := seen[shape(job).key]; ok {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[shape(job).key] = name
	}
}

func TestOnePerNode(t *testing.T) {
	antiAffinity := func(change func(*corev1.PodAffinityTerm)) *JobBuilder {
		return NewJob("j").OnePerNode().With(spec(func(p *corev1.PodSpec) {
			change(&p.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0])
		}))
	}
	port := func(port corev1.ContainerPort, hostNetwork bool) *JobBuilder {
		return NewJob("j").With(spec(func(p *corev1.PodSpec) {
			p.Containers[0].Ports, p.HostNetwork = []corev1.ContainerPort{port}, hostNetwork
		}))
	}
	tests := []struct {
		name string
		job  *JobBuilder
		want bool
	}{
		{"plain", NewJob("j"), false},
		{"anti-affinity to itself", NewJob("j").OnePerNode(), true},
		{"to others", antiAffinity(func(term *corev1.PodAffinityTerm) {
			term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		}), false},
		{"to none", antiAffinity(func(term *corev1.PodAffinityTerm) { term.LabelSelector = nil }), false},
		{"by zone", antiAffinity(func(term *corev1.PodAffinityTerm) { term.TopologyKey = corev1.LabelTopologyZone }), false},
		{"in another namespace", antiAffinity(func(term *corev1.PodAffinityTerm) { term.Namespaces = []string{"x"} }), false},
		{"in all namespaces", antiAffinity(func(term *corev1.PodAffinityTerm) { term.NamespaceSelector = &metav1.LabelSelector{} }), false},
		{"to those that differ", antiAffinity(func(term *corev1.PodAffinityTerm) { term.MismatchLabelKeys = []string{"a"} }), false},
		{"host port", port(corev1.ContainerPort{HostPort: 80}, false), true},
		{"container port", port(corev1.ContainerPort{ContainerPort: 80}, false), false},
		{"container port on the host's network", port(corev1.ContainerPort{ContainerPort: 80}, true), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := shape(test.job).OnePerNode(); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestSlots(t *testing.T) {
	tests := []struct {
		name string
		job  *JobBuilder
		node *NodeBuilder
		want int64
	}{
		{"by number of Pods", NewJob("j"), NewNode("n").Used("pods", "100"), 10},
		{"by cpu", NewJob("j").Requests("cpu", "1500m", "memory", "1Gi"), NewNode("n"), 2},
		{"by memory", NewJob("j").Requests("cpu", "1m", "memory", "5Gi"), NewNode("n"), 3},
		{"by ephemeral storage", NewJob("j").Requests("ephemeral-storage", "1Gi"), NewNode("n").Has("ephemeral-storage", "2Gi"), 2},
		{"by hugepages", NewJob("j").Requests("hugepages-2Mi", "4Mi"), NewNode("n").Has("hugepages-2Mi", "10Mi"), 2},
		{"of a resource that isn't there", NewJob("j").Requests("nvidia.com/gpu", "1"), NewNode("n"), 0},
		{"none of a resource that isn't there", NewJob("j").Requests("nvidia.com/gpu", "0"), NewNode("n"), 110},
		{"on a node with too much on it", NewJob("j").Requests("cpu", "1"), NewNode("n").Used("cpu", "9"), 0},
		{"one per node", NewJob("j").OnePerNode(), NewNode("n"), 1},
		{"one per node, not even that", NewJob("j").OnePerNode(), NewNode("n").Used("pods", "110"), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			free := ResourcesOf(test.node.Obj().Status.Allocatable).Add(ResourcesOf(test.node.Taken), -1)
			if got := shape(test.job).Room(&free); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
