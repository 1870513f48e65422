package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
)

// Snapshot is what the scheduler of one worker knows. Immutable.
type Snapshot struct {
	// Nodes by name.
	Nodes []*Node
	// topologies of the Nodes.
	topologies *topologies
	// Namespaces has the labels of the worker's namespaces. Nil if they aren't known: then terms that
	// select namespaces by labels refuse nothing.
	Namespaces map[string]labels.Set
	// Devices of the worker. Nil if it has none.
	Devices Devices
	// Volumes of the worker. Nil if they aren't known: then they refuse nothing.
	Volumes *Volumes
	// Admission of Pods in the Job's namespace. Nil if it isn't known.
	Admission *Admission
}

// Node is one node, what is free there, and the Pods on it. Immutable.
type Node struct {
	*capacity.Node
	*podsOn
}

// podsOn has the Pods that are bound to a node and haven't ended, or that will be there soon.
type podsOn struct {
	Pods []*Pod
	// guarded are those of them that keep other Pods away, and mostly none.
	guarded []*Pod
	kinds   []kindCount
}

// NewSnapshot takes the objects of a worker. Pods without a node, and those that have ended, don't
// matter; nor do Pods of nodes that don't exist.
func NewSnapshot(nodes []*corev1.Node, pods []*corev1.Pod, namespaces map[string]labels.Set) *Snapshot {
	on := map[string][]*Pod{}
	for _, object := range pods {
		if !ended(object) {
			on[object.Spec.NodeName] = append(on[object.Spec.NodeName], PodOf(object))
		}
	}
	s := &Snapshot{Namespaces: namespaces}
	for _, object := range nodes {
		s.Nodes = append(s.Nodes, nodeOf(object, on[object.Name]))
	}
	slices.SortFunc(s.Nodes, func(a, b *Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	s.topologies = topologiesOf(s.objects())
	return s
}

func nodeOf(object *corev1.Node, pods []*Pod) *Node {
	allocatable := capacity.ResourcesOf(object.Status.Allocatable)
	n := &Node{&capacity.Node{Object: object, Allocatable: allocatable, Idle: allocatable, Free: allocatable}, newPodsOn(pods)}
	for _, p := range pods {
		n.Free = n.Free.Add(p.Requests, -1)
		if p.Lasts {
			n.Idle = n.Idle.Add(p.Requests, -1)
		}
	}
	return n
}

func (s *Snapshot) objects() []*corev1.Node {
	objects := make([]*corev1.Node, len(s.Nodes))
	for i, n := range s.Nodes {
		objects[i] = n.Object
	}
	return objects
}

func newPodsOn(pods []*Pod) *podsOn {
	on := &podsOn{Pods: pods, kinds: countsOf(pods)}
	for _, p := range pods {
		if len(p.antiAffinity) > 0 {
			on.guarded = append(on.guarded, p)
		}
	}
	return on
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Pod is what other Pods notice of a Pod that runs. Immutable.
type Pod struct {
	kind
	// Requests is what it takes of its node.
	Requests capacity.Resources
	// Lasts: it doesn't end by itself.
	Lasts bool
	// Leaving: it's being deleted. It takes capacity, but topology spread doesn't count it.
	Leaving bool

	ports        []port
	antiAffinity []term
}

// PodOf reads a Pod of the worker.
func PodOf(pod *corev1.Pod) *Pod {
	return &Pod{
		kind:         kindOf(pod.Namespace, pod.Labels),
		Requests:     capacity.PodRequests(pod),
		Lasts:        pod.Spec.RestartPolicy == corev1.RestartPolicyAlways,
		Leaving:      pod.DeletionTimestamp != nil,
		ports:        hostPorts(&pod.Spec),
		antiAffinity: termsOf(pod, requiredAntiAffinity(&pod.Spec)),
	}
}
