package capacity

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxTerms bounds the terms of affinity between Pods, and the constraints of topology spread, that
// are judged, of each sort.
const MaxTerms = 8

// maxWeight bounds what one field of a Pod has that is compared with nodes, Pods or volumes of a
// worker: about 300 terms, or 5,000 values. Whoever writes a Pod chooses how many it has.
const maxWeight = 5_000

// Weights of what a Pod has, by the time that a comparison takes: that with a value weighs one.
const (
	TermWeight   = 16 // a term, a requirement, a toleration
	numberWeight = 64 // more for Gt and Lt: each node's label is read as a number, or that fails
	portWeight   = 5
	volumeWeight = 20
	// ReadWeight is of each label or value of a selector that is read.
	ReadWeight  = 70
	claimWeight = 50
)

// field of a Pod that says where it may be, besides what it requests.
type field struct {
	path   string
	weigh  func(*corev1.PodSpec) int
	remove func(*corev1.PodSpec)
}

// Fields are the paths of those by which a Job's Pods are judged.
const (
	SelectorField     = "spec.template.spec.nodeSelector"
	NodeAffinityField = "spec.template.spec.affinity.nodeAffinity"
	AffinityField     = "spec.template.spec.affinity.podAffinity"
	AntiAffinityField = "spec.template.spec.affinity.podAntiAffinity"
	TolerationsField  = "spec.template.spec.tolerations"
	SpreadField       = "spec.template.spec.topologySpreadConstraints"
	PortsField        = "spec.template.spec.containers[].ports"
	VolumesField      = "spec.template.spec.volumes"
	ClaimsField       = "spec.template.spec.resourceClaims"
)

var fields = []field{
	{SelectorField, func(s *corev1.PodSpec) int { return TermWeight * len(s.NodeSelector) }, func(s *corev1.PodSpec) { s.NodeSelector = nil }},
	{NodeAffinityField, weighNodeAffinity, func(s *corev1.PodSpec) {
		changeAffinity(s, func(a *corev1.Affinity) { a.NodeAffinity = nil })
	}},
	{AffinityField, func(s *corev1.PodSpec) int { return WeighTerms(RequiredAffinity(s)) }, func(s *corev1.PodSpec) {
		changeAffinity(s, func(a *corev1.Affinity) { a.PodAffinity = nil })
	}},
	{AntiAffinityField, func(s *corev1.PodSpec) int { return WeighTerms(RequiredAntiAffinity(s)) }, func(s *corev1.PodSpec) {
		changeAffinity(s, func(a *corev1.Affinity) { a.PodAntiAffinity = nil })
	}},
	{TolerationsField, func(s *corev1.PodSpec) int { return TermWeight * len(s.Tolerations) }, func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // whatever a node has
	}},
	{SpreadField, weighSpread, func(s *corev1.PodSpec) { s.TopologySpreadConstraints = nil }},
	{PortsField, func(s *corev1.PodSpec) int { return portWeight * len(HostPorts(s)) }, func(s *corev1.PodSpec) {
		s.Containers, s.InitContainers = withoutPorts(s.Containers), withoutPorts(s.InitContainers)
	}},
	{VolumesField, weighVolumes, func(s *corev1.PodSpec) { s.Volumes = nil }},
	{ClaimsField, func(s *corev1.PodSpec) int { return claimWeight * len(s.ResourceClaims) }, func(s *corev1.PodSpec) { s.ResourceClaims = nil }},
}

// Judged is what a worker is compared with of a Pod's spec: all but the fields that have too much,
// whose paths are returned, too. A Pod without such a field may be anywhere, as far as that field
// goes.
func Judged(spec *corev1.PodSpec) (judged *corev1.PodSpec, left []string) {
	return spared(spec, func(string) int { return maxWeight })
}

// lightened is a spec without those of its fields that nodes would be compared with for too long if
// that is done again and again.
func lightened(spec *corev1.PodSpec) *corev1.PodSpec {
	light, _ := spared(spec, func(path string) int {
		switch path {
		case SelectorField, NodeAffinityField, TolerationsField:
			return maxNodeWeight
		default: // more than a node is compared with it
			return math.MaxInt
		}
	})
	return light
}

// spared is a spec without the fields that weigh more than they may, whose paths are returned, too.
func spared(spec *corev1.PodSpec, most func(path string) int) (light *corev1.PodSpec, left []string) {
	for i := range fields {
		if fields[i].weigh(spec) > most(fields[i].path) {
			left = append(left, fields[i].path)
		}
	}
	if len(left) == 0 {
		return spec, nil
	}
	return Without(spec, left), left
}

// Without is a spec without some fields.
func Without(spec *corev1.PodSpec, paths []string) *corev1.PodSpec {
	changed := *spec
	for i := range fields {
		if slices.Contains(paths, fields[i].path) {
			fields[i].remove(&changed)
		}
	}
	return &changed
}

// Bare is what a spec requests, without all that says where its Pods may be.
func Bare(spec *corev1.PodSpec) *corev1.PodSpec {
	changed := *spec
	for i := range fields {
		fields[i].remove(&changed)
	}
	changed.Affinity, changed.NodeName, changed.OS = nil, "", nil
	return &changed
}

// maxNodeWeight bounds what a Pod has that all nodes are compared with again and again while its
// Job waits: about 15 terms, or 500 values.
const maxNodeWeight = 500

// IsHeavy reports whether it's much work to find out which nodes suit Pods of a spec.
func IsHeavy(spec *corev1.PodSpec) bool {
	w := NodeWorkOf(spec)
	return w.once+w.perTaint > maxNodeWeight
}

// NodeWork is what it takes to ask whether a node suits Pods of a spec: once, and for each of the
// node's taints.
type NodeWork struct {
	once, perTaint int
	// Field that takes most of it.
	Field string
}

// NodeWorkOf a spec.
func NodeWorkOf(spec *corev1.PodSpec) NodeWork {
	w := NodeWork{once: TermWeight*len(spec.NodeSelector) + weighNodeAffinity(spec), perTaint: TermWeight * len(spec.Tolerations), Field: NodeAffinityField}
	switch {
	case w.perTaint > w.once:
		w.Field = TolerationsField
	case 2*TermWeight*len(spec.NodeSelector) > w.once:
		w.Field = SelectorField
	}
	return w
}

// On a node.
func (w *NodeWork) On(node *corev1.Node) int { return w.once + w.perTaint*len(node.Spec.Taints) }

func changeAffinity(spec *corev1.PodSpec, change func(*corev1.Affinity)) {
	if spec.Affinity == nil {
		return
	}
	changed := *spec.Affinity
	change(&changed)
	spec.Affinity = &changed
}

func withoutPorts(containers []corev1.Container) []corev1.Container {
	changed := slices.Clone(containers)
	for i := range changed {
		changed[i].Ports = nil
	}
	return changed
}

// RequiredAffinity are the terms by which a Pod must be near others.
func RequiredAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// RequiredAntiAffinity are the terms by which a Pod must not be near others.
func RequiredAntiAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func weighNodeAffinity(spec *corev1.PodSpec) int {
	weight, required := 0, requiredTerms(spec)
	if required == nil {
		return 0
	}
	for i := range required.NodeSelectorTerms {
		t := &required.NodeSelectorTerms[i]
		weight += TermWeight
		for _, requirements := range [][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
			for k := range requirements {
				weight += TermWeight + len(requirements[k].Values)
				if op := requirements[k].Operator; op == corev1.NodeSelectorOpGt || op == corev1.NodeSelectorOpLt {
					weight += numberWeight
				}
			}
		}
	}
	return weight
}

// JudgedTerms are those of affinity or anti-affinity that are looked at.
func JudgedTerms(terms []corev1.PodAffinityTerm) []corev1.PodAffinityTerm {
	return terms[:min(len(terms), MaxTerms)]
}

// WeighTerms is for those of affinity or anti-affinity.
func WeighTerms(terms []corev1.PodAffinityTerm) (weight int) {
	for i := range JudgedTerms(terms) {
		t := &terms[i]
		weight += weighSelector(t.LabelSelector) + weighSelector(t.NamespaceSelector) + len(t.Namespaces) +
			TermWeight*(1+len(t.MatchLabelKeys)+len(t.MismatchLabelKeys))
	}
	return weight
}

// JudgedSpread are the constraints of topology spread that are looked at.
func JudgedSpread(spec *corev1.PodSpec) (judged []corev1.TopologySpreadConstraint) {
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule && len(judged) < MaxTerms {
			judged = append(judged, *c)
		}
	}
	return judged
}

func weighSpread(spec *corev1.PodSpec) (weight int) {
	for _, c := range JudgedSpread(spec) {
		weight += weighSelector(c.LabelSelector) + TermWeight*(1+len(c.MatchLabelKeys))
	}
	return weight
}

// ReadWork is what it takes to read, once, the selectors of Pods and namespaces that a Pod is
// judged by.
func ReadWork(spec *corev1.PodSpec) int {
	read := 0
	for _, terms := range [][]corev1.PodAffinityTerm{RequiredAffinity(spec), RequiredAntiAffinity(spec)} {
		for _, t := range JudgedTerms(terms) {
			read += ReadingOf(t.LabelSelector) + ReadingOf(t.NamespaceSelector) + len(t.MatchLabelKeys) + len(t.MismatchLabelKeys)
		}
	}
	for _, c := range JudgedSpread(spec) {
		read += ReadingOf(c.LabelSelector) + len(c.MatchLabelKeys)
	}
	return ReadWeight * read
}

// weighVolumes is for those that claims stand for. Volumes are found by the selectors of claims.
func weighVolumes(spec *corev1.PodSpec) int {
	weight := volumeWeight * len(claims(spec.Volumes))
	for i := range spec.Volumes {
		e := spec.Volumes[i].Ephemeral
		if e == nil || e.VolumeClaimTemplate == nil {
			continue
		}
		weight += ReadWeight * ReadingOf(e.VolumeClaimTemplate.Spec.Selector)
	}
	return weight
}

// ReadingOf a selector is how many labels, requirements and values it has: each is validated when
// the selector is read.
func ReadingOf(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	n := len(s.MatchLabels)
	for i := range s.MatchExpressions {
		n += 1 + len(s.MatchExpressions[i].Values)
	}
	return n
}

func weighSelector(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	weight := TermWeight * len(s.MatchLabels)
	for i := range s.MatchExpressions {
		weight += TermWeight + len(s.MatchExpressions[i].Values)
	}
	return weight
}
