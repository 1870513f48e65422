package capacity

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
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
	// os is what the kubelet refuses a Pod by. The scheduler doesn't look at it.
	os         corev1.OSName
	onePerNode bool
	// work is what it takes to compare a node without taints with it, in comparisons of a plain one.
	work int
	// key is equal for Pods that fit on the same nodes.
	key string
	// bytes that it takes in memory.
	bytes int
}

// other is a request of one of Resources.Others, in a slice because it's read once per node.
type other struct {
	name   corev1.ResourceName
	amount int64
}

// ShapeOf is the Shape of the Pods that a template makes. Limits stand in for requests that are
// left out, as in SetDefaults_Pod of the API server, which fills in Pods but not templates.
func ShapeOf(template *corev1.PodTemplateSpec) *Shape {
	return shapeOf(&template.Spec, template.Labels, TemplateRequests(&template.Spec))
}

// LightShapeOf is the Shape by which room is held for the Pods that a template makes, and looked
// for, which takes many comparisons: it leaves out what would make each of them long.
func LightShapeOf(template *corev1.PodTemplateSpec) *Shape {
	spec := lightened(&template.Spec)
	return shapeOf(spec, template.Labels, TemplateRequests(spec))
}

// shapeOfPod is the LightShapeOf a Pod that an API server has filled in.
func shapeOfPod(pod *corev1.Pod) *Shape {
	return shapeOf(lightened(&pod.Spec), pod.Labels, PodRequests(pod))
}

// shapeOf leaves out what has too much to be compared with nodes.
func shapeOf(spec *corev1.PodSpec, labels map[string]string, unit Resources) *Shape {
	spec, _ = Judged(spec)
	s := &Shape{
		unit:        unit,
		affinity:    requiredOf(spec),
		selective:   len(spec.NodeSelector) > 0 || requiredTerms(spec) != nil,
		tolerations: spec.Tolerations,
		nodeName:    spec.NodeName,
		onePerNode:  excludesItself(spec, labels),
		work:        1 + NodeWorkOf(spec).once/TermWeight,
	}
	if spec.OS != nil {
		s.os = spec.OS.Name
	}
	for name, amount := range unit.Others {
		s.others = append(s.others, other{name: name, amount: amount})
	}
	slices.SortFunc(s.others, func(a, b other) int { return cmp.Compare(a.name, b.name) })
	s.work += len(s.others) / othersPerWork
	s.key, s.bytes = s.hash(spec), s.bytesOf(spec)
	return shared(s)
}

// othersPerWork is how many amounts are compared in the time of a plain comparison.
const othersPerWork = 4

// tolerationsPerWork is how many tolerations are compared with a taint in the time of a plain
// comparison.
const tolerationsPerWork = 4

// WorkOn is what it takes to compare a node with the Shape, in comparisons of a plain one.
func (s *Shape) WorkOn(node *corev1.Node) int {
	return s.work + len(node.Spec.Taints)*len(s.tolerations)/tolerationsPerWork
}

// What takes so much in memory of a Shape, beside its texts: an amount of a resource, a toleration,
// a requirement of nodes, and each of its values.
const (
	otherBytes       = 64
	tolerationBytes  = 96
	requirementBytes = 160
	valueBytes       = 32
)

// Bytes is about how many bytes a Shape takes in memory, beside what every Shape does.
func (s *Shape) Bytes() int { return s.bytes }

// bytesOf a Shape of Pods of a spec.
func (s *Shape) bytesOf(spec *corev1.PodSpec) (bytes int) {
	for _, o := range s.others {
		bytes += otherBytes + len(o.name)
	}
	for i := range s.tolerations {
		bytes += tolerationBytes + s.tolerations[i].Size()
	}
	for key, value := range spec.NodeSelector {
		bytes += requirementBytes + valueBytes + len(key) + len(value)
	}
	if required := requiredTerms(spec); required != nil {
		for i := range required.NodeSelectorTerms {
			t := &required.NodeSelectorTerms[i]
			bytes += requirementBytes + t.Size()
			for _, requirements := range [][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
				for k := range requirements {
					bytes += requirementBytes + valueBytes*len(requirements[k].Values)
				}
			}
		}
	}
	return bytes
}

// Key is equal for Shapes of which any number of Pods fits on the same nodes.
func (s *Shape) Key() string { return s.key }

// Unit is what one Pod takes of its node.
func (s *Shape) Unit() Resources { return s.unit }

// OnePerNode reports whether no two Pods of this Shape can be on one node.
func (s *Shape) OnePerNode() bool { return s.onePerNode }

// HasExtended reports whether a Pod wants an extended resource, for which devices may stand.
func (s *Shape) HasExtended() bool {
	return slices.ContainsFunc(s.others, func(o other) bool { return Extended(o.name) })
}

// Without is the Shape of Pods that request some resources no more.
func (s *Shape) Without(is func(corev1.ResourceName) bool) *Shape {
	without, text := *s, s.key
	without.others, without.unit.Others = nil, maps.Clone(s.unit.Others)
	for _, o := range s.others {
		if !is(o.name) {
			without.others = append(without.others, o)
			continue
		}
		delete(without.unit.Others, o.name)
		text += "," + string(o.name)
	}
	if text == s.key {
		return s
	}
	without.key = keyOf([]byte(text))
	return &without
}

// hash covers every field that slots and suits read; the spec's in protobuf: JSON would make six
// bytes of a character, and there may be millions.
func (s *Shape) hash(spec *corev1.PodSpec) string {
	read := corev1.PodSpec{NodeSelector: spec.NodeSelector, Tolerations: s.tolerations, NodeName: s.nodeName, OS: &corev1.PodOS{Name: s.os}}
	if required := requiredTerms(spec); required != nil {
		read.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	proto, _ := read.Marshal() // it never fails, and sorts maps
	of := &s.unit
	data := make([]byte, 0, 64+len(proto))
	for _, n := range []int64{of.MilliCPU, of.Memory, of.EphemeralStorage, of.Pods, int64(len(s.others))} {
		data = binary.AppendVarint(data, n)
	}
	for _, o := range s.others {
		data = binary.AppendVarint(data, int64(len(o.name)))
		data = binary.AppendVarint(append(data, o.name...), o.amount)
	}
	return keyOf(append(strconv.AppendBool(data, s.onePerNode), proto...))
}

func keyOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Room is how many Pods of this Shape fit in what is free on one node that suits them.
func (s *Shape) Room(free *Resources) int64 { return s.RoomBeside(free, &Resources{}) }

// RoomBeside is Room when something of what is free is taken.
func (s *Shape) RoomBeside(free, taken *Resources) int64 {
	// The bound keeps sums over nodes from overflowing, whatever a node says that it has.
	slots := min(free.Pods-taken.Pods, math.MaxInt32)
	if s.unit.MilliCPU > 0 {
		slots = min(slots, (free.MilliCPU-taken.MilliCPU)/s.unit.MilliCPU)
	}
	if s.unit.Memory > 0 {
		slots = min(slots, (free.Memory-taken.Memory)/s.unit.Memory)
	}
	if s.unit.EphemeralStorage > 0 {
		slots = min(slots, (free.EphemeralStorage-taken.EphemeralStorage)/s.unit.EphemeralStorage)
	}
	for _, o := range s.others {
		slots = min(slots, (free.Others[o.name]-taken.Others[o.name])/o.amount)
	}
	if s.onePerNode {
		slots = min(slots, 1)
	}
	return max(slots, 0)
}

// With is r with what some Pods have given back, of what the Shape requests: nothing else of it
// counts for the Shape.
func (s *Shape) With(r Resources, given *Resources, n int64) Resources {
	r.MilliCPU += n * given.MilliCPU
	r.Memory += n * given.Memory
	r.EphemeralStorage += n * given.EphemeralStorage
	r.Pods += n * given.Pods
	if len(s.others) == 0 || len(given.Others) == 0 {
		return r
	}
	others := make(map[corev1.ResourceName]int64, len(s.others))
	for _, o := range s.others {
		if amount, has := r.Others[o.name]; has {
			others[o.name] = amount + n*given.Others[o.name]
		}
	}
	r.Others = others
	return r
}

func requiredTerms(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// excludesItself reports whether two Pods of a template can't be on the same node: they hold a port
// of the host, or require anti-affinity by hostname to Pods with their own labels.
func excludesItself(spec *corev1.PodSpec, labels map[string]string) bool {
	return len(HostPorts(spec)) > 0 || avoidsItself(spec, labels)
}

func avoidsItself(spec *corev1.PodSpec, labels map[string]string) bool {
	return slices.ContainsFunc(JudgedTerms(RequiredAntiAffinity(spec)), func(t corev1.PodAffinityTerm) bool {
		return t.TopologyKey == corev1.LabelHostname && selectsItself(&t, labels)
	})
}

// selectsItself reads a term's selector against the Pod's own labels. matchLabelKeys hold for Pods
// of the same template; mismatchLabelKeys never do. Terms over other namespaces are left to the
// scheduler.
func selectsItself(term *corev1.PodAffinityTerm, labels map[string]string) bool {
	if len(term.Namespaces) > 0 || term.NamespaceSelector != nil || len(term.MismatchLabelKeys) > 0 {
		return false
	}
	return selects(term.LabelSelector, labels)
}
