package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Shape is what decides on which nodes a Pod fits. Immutable.
type Shape struct {
	unit        Resources
	others      []other
	affinity    nodeaffinity.RequiredNodeAffinity
	selective   bool
	tolerations []corev1.Toleration
	nodeName    string
	onePerNode  bool
	key         string
}

// other is a request of one of Resources.Others, in a slice because it's read once per node.
type other struct {
	name   corev1.ResourceName
	amount int64
}

// ShapeOf is the Shape of the Pods that a template makes. Limits stand in for requests that are
// left out, as in SetDefaults_Pod of the API server, which fills in Pods but not templates.
func ShapeOf(template *corev1.PodTemplateSpec) *Shape {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	return shapeOf(pod, requestsOf(&template.Spec))
}

// ShapeOfPod is the Shape of a Pod that an API server has filled in.
func ShapeOfPod(pod *corev1.Pod) *Shape {
	return shapeOf(pod, PodRequests(pod))
}

// PodRequests is what a Pod takes of its node, with one under Pods. A resize in place counts as the
// larger of what it had, has and asks for, as the scheduler does.
func PodRequests(pod *corev1.Pod) Resources {
	unit := ResourcesOf(resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
	unit.Pods = 1
	return unit
}

func shapeOf(pod *corev1.Pod, unit Resources) *Shape {
	s := &Shape{
		unit:        unit,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(pod),
		selective:   len(pod.Spec.NodeSelector) > 0 || requiredTerms(&pod.Spec) != nil,
		tolerations: pod.Spec.Tolerations,
		nodeName:    pod.Spec.NodeName,
		onePerNode:  excludesItself(pod),
	}
	for name, amount := range unit.Others {
		if amount > 0 {
			s.others = append(s.others, other{name: name, amount: amount})
		}
	}
	slices.SortFunc(s.others, func(a, b other) int { return cmp.Compare(a.name, b.name) })
	s.key = s.hash(&pod.Spec)
	return s
}

// Key is equal for Pods that fit on the same nodes, so that a Job which doesn't fit speaks for all
// of its kind.
func (s *Shape) Key() string { return s.key }

// Unit is what one Pod takes of its node.
func (s *Shape) Unit() Resources { return s.unit }

// OnePerNode says whether no two Pods of this Shape can be on one node.
func (s *Shape) OnePerNode() bool { return s.onePerNode }

// hash covers every field that Slots and match read.
func (s *Shape) hash(spec *corev1.PodSpec) string {
	// Plain data of API types: marshalling can't fail, and it sorts maps.
	data, _ := json.Marshal(struct {
		Unit        Resources
		Selector    map[string]string
		Affinity    *corev1.NodeSelector
		Tolerations []corev1.Toleration
		NodeName    string
		OnePerNode  bool
	}{s.unit, spec.NodeSelector, requiredTerms(spec), s.tolerations, s.nodeName, s.onePerNode})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Slots is how many Pods of this Shape fit in the room of one node that they match.
func (s *Shape) Slots(room *Resources) int64 {
	// The bound keeps sums over nodes from overflowing, whatever a node says that it has.
	slots := min(room.Pods, math.MaxInt32)
	if s.unit.MilliCPU > 0 {
		slots = min(slots, room.MilliCPU/s.unit.MilliCPU)
	}
	if s.unit.Memory > 0 {
		slots = min(slots, room.Memory/s.unit.Memory)
	}
	if s.unit.EphemeralStorage > 0 {
		slots = min(slots, room.EphemeralStorage/s.unit.EphemeralStorage)
	}
	for _, o := range s.others {
		slots = min(slots, room.Others[o.name]/o.amount)
	}
	if s.onePerNode {
		slots = min(slots, 1)
	}
	return max(slots, 0)
}

// requests lists the resources that the Shape asks for, the number of Pods last.
func (s *Shape) requests() []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	} {
		if s.unit.Get(name) > 0 {
			names = append(names, name)
		}
	}
	for _, o := range s.others {
		names = append(names, o.name)
	}
	return append(names, corev1.ResourcePods)
}

func requiredTerms(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
