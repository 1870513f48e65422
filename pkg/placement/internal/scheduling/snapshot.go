package scheduling

import (
	"cmp"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Snapshot is what the scheduler of one worker knows. Immutable.
type Snapshot struct {
	// Nodes by name.
	Nodes []*Node
	// topologies of the Nodes.
	topologies *topologies
	// kinds of the Pods, by their indexes.
	kinds []*kindEntry
	// guarded are the nodes with Pods that keep others away.
	guarded []*Node
	// sums over nodes and Pods.
	sums *sums
	// Namespaces of the worker, by name, for their labels. Where they aren't known, and where the
	// Job's isn't there yet, terms that read more of them than the name refuse nothing.
	Namespaces map[string]*corev1.Namespace
	// Devices of the worker. Nil if it has none, or they aren't known.
	Devices Devices
	// DevicesUnknown: the worker may have devices for extended resources that no node has.
	DevicesUnknown bool
	// NodesUnknown: every Pod fits, unless its volumes are in the way.
	NodesUnknown bool
	// Volumes of the worker. Nil if they aren't known: then they refuse nothing.
	Volumes *Volumes
	// Listing is why the Job waits for something that is being listed; nil: it doesn't.
	Listing *Reason
	// CantJudge: what the worker has can't be read, and no Job fits until it changes.
	CantJudge bool
	// Admission of Pods in the Job's namespace. Nil if it isn't known.
	Admission *Admission
	// Preemption: Pods of a lower priority than the Job's aren't in its way.
	Preemption bool
	// Autoscaling is what the worker's autoscaler may still add. Nil if it adds nothing.
	Autoscaling *autoscaling.Room
}

// Node is one node, what is free there, and the Pods on it. Immutable.
type Node struct {
	*capacity.Node
	*podsOn
}

// podsOn has the Pods that are bound to a node and haven't ended, or that will be there soon.
type podsOn struct {
	Pods  []*Pod
	kinds []kindCount
	// guards are those of the kinds that keep others away.
	guards []kindCount
	// claiming are the Pods whose volumes have claims.
	claiming []*Pod
	// owned are hashes of the values of Pods' own labels, in order.
	owned []uint64
}

// NewSnapshot takes the objects of a worker. Pods without a node, and those that have ended, don't
// matter; nor do Pods of nodes that don't exist.
func NewSnapshot(nodes []*corev1.Node, pods []*corev1.Pod, namespaces map[string]*corev1.Namespace) *Snapshot {
	on, kinds := map[string][]*Pod{}, newKindTable()
	for _, object := range pods {
		if !capacity.Ended(object) {
			p := PodOf(object)
			kinds.add(p.kind)
			on[object.Spec.NodeName] = append(on[object.Spec.NodeName], p)
		}
	}
	s := &Snapshot{Namespaces: namespaces, kinds: kinds.list(), sums: &sums{}}
	for _, object := range nodes {
		s.Nodes = append(s.Nodes, nodeOf(object, kinds.look(on[object.Name])))
	}
	slices.SortFunc(s.Nodes, func(a, b *Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	s.topologies = topologiesOf(s.objects())
	s.findGuards()
	return s
}

func (s *Snapshot) findGuards() {
	for _, n := range s.Nodes {
		if len(n.guards) > 0 {
			s.guarded = append(s.guarded, n)
		}
	}
}

func nodeOf(object *corev1.Node, there *podsOn) *Node {
	allocatable := capacity.ResourcesOf(object.Status.Allocatable)
	idle, free := capacity.SumOf(allocatable), capacity.SumOf(allocatable)
	for _, p := range there.Pods {
		free.Add(&p.Requests, -1)
		if p.Lasts {
			idle.Add(&p.Requests, -1)
		}
	}
	return &Node{&capacity.Node{Object: object, Allocatable: allocatable, Idle: idle.Total(), Free: free.Total()}, there}
}

func (s *Snapshot) objects() []*corev1.Node {
	objects := make([]*corev1.Node, len(s.Nodes))
	for i, n := range s.Nodes {
		objects[i] = n.Object
	}
	return objects
}

// Pod is what other Pods notice of a Pod that runs. Immutable.
type Pod struct {
	kind
	own unique.Handle[labelSet]
	// Requests is what it takes of its node.
	Requests capacity.Resources
	// Lasts: it doesn't end by itself.
	Lasts bool
	// Leaving: it's being deleted. It takes capacity, but topology spread doesn't count it.
	Leaving bool
	// Priority as the API server has resolved it.
	Priority int32

	ports []capacity.HostPort
	// claims are the names of those that its volumes have.
	claims []string
}

// PodOf reads a Pod of the worker.
func PodOf(pod *corev1.Pod) *Pod {
	kind, own := kindOf(pod)
	return &Pod{
		kind:     kind,
		own:      own,
		Requests: capacity.PodRequests(pod),
		Lasts:    pod.Spec.RestartPolicy == corev1.RestartPolicyAlways,
		Leaving:  pod.DeletionTimestamp != nil,
		Priority: ptr.Deref(pod.Spec.Priority, 0),
		ports:    capacity.HostPorts(&pod.Spec),
		claims:   claimsOfPod(pod),
	}
}
