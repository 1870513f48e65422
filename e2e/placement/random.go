package main

import (
	"fmt"
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// source of one pair's chances. Values come from small sets, so that things meet.
type source struct{ *rand.Rand }

// random makes the pair of a seed.
func random(seed uint64) *pair {
	s := source{rand.New(rand.NewPCG(seed, 19))}
	p := &pair{}
	for i := range s.size() {
		p.Nodes = append(p.Nodes, s.node(fmt.Sprintf("n%d", i)))
	}
	for i := range s.IntN(2*len(p.Nodes) + 1) {
		p.Pods = append(p.Pods, s.pod(fmt.Sprintf("p%d", i), p.Nodes[s.IntN(len(p.Nodes))].Name))
	}
	p.Job = s.job()
	if s.chance(25) {
		s.devices(p)
	}
	if s.chance(25) {
		s.volumes(p)
	}
	if s.chance(25) || s.chance(35) && p.claims() {
		s.limits(p)
	}
	if s.chance(25) {
		s.priorities(p)
	}
	if s.chance(15) {
		s.runtimes(p)
	}
	return p
}

// size is 2 to 50 nodes, mostly few: small clusters show as much.
func (s source) size() int {
	if s.chance(5) {
		return 10 + s.IntN(41)
	}
	return 2 + s.IntN(7)
}

func (s source) chance(percent int) bool { return s.IntN(100) < percent }

func (s source) of(values ...string) string { return values[s.IntN(len(values))] }

const gpu = "example.com/gpu"

func (s source) node(name string) *corev1.Node {
	allocatable := corev1.ResourceList{
		"cpu": resource.MustParse(s.of("1", "2", "4")), "memory": resource.MustParse(s.of("1Gi", "2Gi", "8Gi")),
		"ephemeral-storage": resource.MustParse("10Gi"), "pods": resource.MustParse(s.of("2", "5", "110", "110")),
	}
	if s.chance(30) {
		allocatable[gpu] = resource.MustParse(s.of("0", "1", "4"))
	}
	labels := map[string]string{corev1.LabelHostname: name, "disk": s.of("ssd", "hdd"), "gen": s.of("1", "2", "3")}
	if s.chance(95) {
		labels[zoneKey] = s.of("a", "b", "c")
	}
	if s.chance(80) {
		labels[rackKey] = s.of("r1", "r2", "r3", "r4")
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Capacity: allocatable, Allocatable: allocatable},
	}
	node.Spec.Unschedulable = s.chance(7)
	if s.chance(20) {
		node.Spec.Taints = append(node.Spec.Taints, s.taint())
	}
	return node
}

func (s source) taint() corev1.Taint {
	return corev1.Taint{
		Key: s.of("dedicated", "dedicated", "spot", "node.kubernetes.io/not-ready"), Value: s.of("", "x", "y"),
		Effect: corev1.TaintEffect(s.of("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")),
	}
}

func (s source) labels() map[string]string {
	return map[string]string{"app": s.of("a", "b"), "tier": s.of("1", "2")}
}

// pod runs on a node.
func (s source) pod(name, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.of(own, own, other), Labels: s.labels()},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{s.container("main")},
			RestartPolicy: corev1.RestartPolicy(s.of("Always", "Never", "Never")),
		},
	}
	if s.chance(10) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, s.initContainer())
	}
	if s.chance(10) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{s.podTerm()},
		}}
	}
	return pod
}

func (s source) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "image"}
	c.Resources.Requests = corev1.ResourceList{}
	if s.chance(80) {
		c.Resources.Requests["cpu"] = resource.MustParse(s.of("100m", "500m", "1", "1500m"))
	}
	if s.chance(50) {
		c.Resources.Requests["memory"] = resource.MustParse(s.of("100Mi", "1Gi", "1500Mi"))
	}
	if s.chance(10) {
		c.Resources.Requests["ephemeral-storage"] = resource.MustParse(s.of("1Gi", "6Gi"))
	}
	if s.chance(10) {
		amount := corev1.ResourceList{gpu: resource.MustParse(s.of("1", "2"))}
		c.Resources.Limits = amount
	}
	if s.chance(10) {
		c.Ports = append(c.Ports, corev1.ContainerPort{
			ContainerPort: 80, HostPort: int32(8000 + s.IntN(2)), HostIP: s.of("", "", "10.0.0.1", "10.0.0.2"),
			Protocol: corev1.Protocol(s.of("TCP", "TCP", "UDP")),
		})
	}
	return c
}

func (s source) initContainer() corev1.Container {
	c := s.container("init")
	if s.chance(50) {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	return c
}

func (s source) job() *batchv1.Job {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: s.labels()},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{s.container("main")}},
	}
	spec := &template.Spec
	if s.chance(20) {
		spec.InitContainers = append(spec.InitContainers, s.initContainer())
	}
	if s.chance(25) {
		spec.NodeSelector = map[string]string{"disk": s.of("ssd", "hdd", "tape")}
	}
	for s.chance(25) {
		spec.Tolerations = append(spec.Tolerations, s.toleration())
	}
	spec.Affinity = s.affinity()
	for s.chance(25) && len(spec.TopologySpreadConstraints) < 2 {
		s.spread(spec)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: own, UID: "hub"},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To(int32(1 + s.IntN(5))), Template: template},
	}
}

func (s source) toleration() corev1.Toleration {
	t := corev1.Toleration{
		Key: s.of("dedicated", "spot", "node.kubernetes.io/unschedulable"), Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffect(s.of("", "NoSchedule", "NoExecute")),
	}
	if s.chance(30) {
		t.Operator, t.Value = corev1.TolerationOpEqual, s.of("", "x")
	}
	return t
}

func (s source) affinity() *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if s.chance(15) {
		affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
		terms := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for *terms = append(*terms, s.nodeTerm()); s.chance(30); *terms = append(*terms, s.nodeTerm()) {
		}
	}
	if s.chance(15) {
		affinity.PodAffinity = &corev1.PodAffinity{}
		terms := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for *terms = append(*terms, s.podTerm()); s.chance(20); *terms = append(*terms, s.podTerm()) {
		}
	}
	if s.chance(20) {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		terms := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for *terms = append(*terms, s.podTerm()); s.chance(20); *terms = append(*terms, s.podTerm()) {
		}
	}
	return affinity
}

func (s source) nodeTerm() corev1.NodeSelectorTerm {
	switch s.IntN(4) {
	case 0:
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{s.of("n0", "n1", "n2")}},
		}}
	case 1:
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "gen", Operator: corev1.NodeSelectorOperator(s.of("Gt", "Lt")), Values: []string{"2"}},
		}}
	case 2:
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: s.of(rackKey, zoneKey), Operator: corev1.NodeSelectorOperator(s.of("Exists", "DoesNotExist"))},
		}}
	default:
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: zoneKey, Operator: corev1.NodeSelectorOperator(s.of("In", "NotIn")), Values: []string{s.of("a", "b"), "c"}},
		}}
	}
}

func (s source) selector() *metav1.LabelSelector {
	if s.chance(20) {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{s.of("1", "2")}},
		}}
	}
	return s.appSelector()
}

// appSelector leaves the other label to matchLabelKeys: the API server refuses a key in both.
func (s source) appSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.of("a", "b")}}
}

func (s source) podTerm() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{LabelSelector: s.selector(), TopologyKey: s.of(corev1.LabelHostname, zoneKey, rackKey)}
	switch s.IntN(7) {
	case 0:
		t.Namespaces = []string{s.of(own, other)}
	case 1:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{kindLabel: s.of(own, other)}}
	case 4:
		t.NamespaceSelector = s.namespaces()
		if s.chance(30) {
			t.Namespaces = []string{s.of(own, other)}
		}
	case 2:
		t.LabelSelector, t.MatchLabelKeys = s.appSelector(), []string{s.of("tier", "absent")}
	case 3:
		t.LabelSelector, t.MismatchLabelKeys = s.appSelector(), []string{"tier"}
	}
	return t
}

// namespaces are selected by labels that they have or lack.
func (s source) namespaces() *metav1.LabelSelector {
	key := s.of(kindLabel, "lacking")
	switch s.IntN(4) {
	case 0:
		return &metav1.LabelSelector{} // all
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	default:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{own}}}}
	}
}

// spread adds a constraint. Keys must differ.
func (s source) spread(spec *corev1.PodSpec) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + s.IntN(2)), TopologyKey: s.of(corev1.LabelHostname, zoneKey, rackKey),
		WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(s.of("DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
		LabelSelector:     s.selector(),
	}
	for i := range spec.TopologySpreadConstraints {
		if spec.TopologySpreadConstraints[i].TopologyKey == c.TopologyKey {
			return
		}
	}
	if s.chance(25) && c.WhenUnsatisfiable == corev1.DoNotSchedule {
		c.MinDomains = ptr.To(int32(1 + s.IntN(4)))
	}
	if s.chance(20) {
		c.LabelSelector, c.MatchLabelKeys = s.appSelector(), []string{"tier"}
	}
	if s.chance(30) {
		c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicy(s.of("Honor", "Ignore")))
	}
	if s.chance(40) && c.TopologyKey == rackKey {
		// only here: other pairs have no such key
		c.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
	}
	spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
}
