package main

import (
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// pair is one cluster and one Job. Names are those that a reader sees; see locate.
type pair struct {
	Nodes []*corev1.Node
	Pods  []*corev1.Pod // bound to Nodes
	Job   *batchv1.Job
	// Mates of the Job's group, and what the order is drawn from in which the Pods of all come.
	Mates []*batchv1.Job
	Order uint64
	deviceObjects
	namespaceLimits
	volumeObjects
	classObjects
}

// The namespaces of a pair: the Job's, and another.
const (
	own   = "own"
	other = "other"
)

const (
	pairLabel = "pair" // of nodes and namespaces: which pair they belong to
	kindLabel = "kind" // of namespaces: own or other
	roleLabel = "role" // of Pods that the judge waits for
	rackKey   = "rack"
	zoneKey   = corev1.LabelTopologyZone
)

// copyOf is a deep copy.
func (p *pair) copyOf() *pair {
	return &pair{copies(p.Nodes), copies(p.Pods), p.Job.DeepCopy(), copies(p.Mates), p.Order, p.deviceObjects.copyOf(), p.namespaceLimits.copyOf(), p.volumeObjects.copyOf(), p.classObjects.copyOf()}
}

// plain reports whether the pair has nodes and Pods only.
func (p *pair) plain() bool {
	return len(p.PriorityClasses)+len(p.RuntimeClasses)+len(p.DeviceClasses)+len(p.LimitRanges)+len(p.ResourceQuotas)+len(p.StorageClasses) == 0
}

// podOf is one of a Job's, which isn't created yet.
func podOf(job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = job.Namespace, job.Name+"-"
	return pod
}

// restore reports whether the node was cordoned or troubled.
func restore(node *corev1.Node) bool {
	changed := node.Spec.Unschedulable
	node.Spec.Unschedulable = false
	var taints []corev1.Taint
	for _, t := range node.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			changed = true
			continue
		}
		taints = append(taints, t)
	}
	node.Spec.Taints = taints
	return changed
}

// locate renames what would meet other pairs in the same API server.
func (p *pair) locate(id string) *pair {
	c := p.copyOf()
	l := location(id)
	for _, n := range c.Nodes {
		n.Name = l.name(n.Name)
		labels := map[string]string{pairLabel: id}
		for key, value := range n.Labels {
			labels[l.key(key)] = l.value(key, value)
		}
		n.Labels = labels
		l.resources(n.Status.Allocatable)
		l.resources(n.Status.Capacity)
	}
	for _, pod := range c.Pods {
		pod.Namespace = l.name(pod.Namespace)
		l.spec(&pod.Spec)
		pod.Spec.NodeName = l.name(pod.Spec.NodeName)
	}
	for _, j := range c.jobs() {
		j.Namespace = l.name(j.Namespace)
		spec := &j.Spec.Template.Spec
		l.spec(spec)
		spec.NodeSelector[pairLabel] = id
	}
	l.devices(&c.deviceObjects)
	l.limits(&c.namespaceLimits)
	l.volumes(&c.volumeObjects)
	l.classes(&c.classObjects)
	return c
}

// location is a pair's place in the API server.
type location string

func (l location) name(name string) string { return string(l) + "-" + name }

// namespaces of the pair.
func (l location) namespaces() []*corev1.Namespace {
	var namespaces []*corev1.Namespace
	for _, kind := range []string{own, other} {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: l.name(kind), Labels: map[string]string{pairLabel: string(l), kindLabel: kind},
		}})
	}
	return namespaces
}

func (l location) key(key string) string {
	if key == rackKey {
		return l.name(key)
	}
	return key
}

func (l location) value(key, value string) string {
	switch key {
	case zoneKey, rackKey, corev1.LabelHostname:
		return l.name(value)
	default:
		return value
	}
}

func (l location) selector(from map[string]string) map[string]string {
	selector := map[string]string{}
	for key, value := range from {
		selector[l.key(key)] = l.value(key, value)
	}
	return selector
}

func (l location) spec(spec *corev1.PodSpec) {
	spec.NodeSelector = l.selector(spec.NodeSelector)
	if spec.PriorityClassName != "" {
		spec.PriorityClassName = l.name(spec.PriorityClassName)
	}
	if spec.RuntimeClassName != nil {
		spec.RuntimeClassName = ptr.To(l.name(*spec.RuntimeClassName))
	}
	for i := range spec.InitContainers {
		l.container(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		l.container(&spec.Containers[i])
	}
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		c.TopologyKey = l.key(c.TopologyKey)
	}
	if spec.Affinity == nil {
		return
	}
	if a := spec.Affinity.NodeAffinity; a != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			l.nodeTerm(&a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i])
		}
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		l.podTerms(a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		l.podTerms(a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
}

func (l location) container(c *corev1.Container) {
	l.resources(c.Resources.Requests)
	l.resources(c.Resources.Limits)
}

func (l location) resources(list corev1.ResourceList) {
	for name, amount := range maps.Clone(list) {
		delete(list, name)
		list[l.resource(name)] = amount
	}
}

func (l location) nodeTerm(term *corev1.NodeSelectorTerm) {
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		for v := range e.Values {
			e.Values[v] = l.value(e.Key, e.Values[v])
		}
		e.Key = l.key(e.Key)
	}
	for i := range term.MatchFields {
		for v := range term.MatchFields[i].Values {
			term.MatchFields[i].Values[v] = l.name(term.MatchFields[i].Values[v])
		}
	}
}

func (l location) podTerms(terms []corev1.PodAffinityTerm) {
	for i := range terms {
		t := &terms[i]
		t.TopologyKey = l.key(t.TopologyKey)
		for n := range t.Namespaces {
			t.Namespaces[n] = l.name(t.Namespaces[n])
		}
		if t.NamespaceSelector != nil {
			t.NamespaceSelector = metav1.AddLabelToSelector(t.NamespaceSelector, pairLabel, string(l))
		}
	}
}

// String shows the pair as YAML, without what is empty.
func (p *pair) String() string {
	var out strings.Builder
	for _, n := range p.Nodes {
		write(&out, "node "+n.Name, map[string]any{
			"labels": n.Labels, "taints": n.Spec.Taints, "unschedulable": n.Spec.Unschedulable, "allocatable": n.Status.Allocatable,
		})
	}
	for _, pod := range p.Pods {
		write(&out, fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name), map[string]any{"labels": pod.Labels, "spec": pod.Spec})
	}
	for _, s := range p.ResourceSlices {
		write(&out, "resourceslice "+s.Name, s.Spec)
	}
	for _, c := range p.DeviceClasses {
		write(&out, "deviceclass "+c.Name, c.Spec)
	}
	for _, c := range p.ResourceClaims {
		write(&out, fmt.Sprintf("resourceclaim %s/%s", c.Namespace, c.Name), map[string]any{"spec": c.Spec, "status": c.Status})
	}
	for _, t := range p.ResourceClaimTemplates {
		write(&out, fmt.Sprintf("resourceclaimtemplate %s/%s", t.Namespace, t.Name), t.Spec.Spec)
	}
	for _, r := range p.LimitRanges {
		write(&out, "limitrange "+r.Name, r.Spec)
	}
	for _, q := range p.ResourceQuotas {
		write(&out, "resourcequota "+q.Name, q.Spec)
	}
	p.writeVolumes(&out)
	for _, c := range p.PriorityClasses {
		write(&out, "priorityclass "+c.Name, map[string]any{"value": c.Value, "preemptionPolicy": c.PreemptionPolicy, "globalDefault": c.GlobalDefault})
	}
	for _, c := range p.RuntimeClasses {
		write(&out, "runtimeclass "+c.Name, map[string]any{"overhead": c.Overhead, "scheduling": c.Scheduling})
	}
	for _, j := range p.jobs() {
		write(&out, j.Name+" "+j.Namespace, j.Spec)
	}
	return out.String()
}

func (p *pair) writeVolumes(out *strings.Builder) {
	for _, c := range p.StorageClasses {
		write(out, "storageclass "+c.Name, c)
	}
	for _, v := range p.PersistentVolumes {
		write(out, "persistentvolume "+v.Name, map[string]any{"labels": v.Labels, "spec": v.Spec, "phase": v.Status.Phase})
	}
	for _, c := range p.PersistentVolumeClaims {
		write(out, fmt.Sprintf("persistentvolumeclaim %s/%s", c.Namespace, c.Name),
			map[string]any{"annotations": c.Annotations, "spec": c.Spec, "phase": c.Status.Phase})
	}
	for _, n := range p.CSINodes {
		write(out, "csinode "+n.Name, n.Spec)
	}
	for _, d := range p.CSIDrivers {
		write(out, "csidriver "+d.Name, d.Spec)
	}
	for _, c := range p.CSIStorageCapacities {
		write(out, "csistoragecapacity "+c.Name, c)
	}
}

func write(out *strings.Builder, title string, value any) {
	text, err := yaml.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprintf(out, "%s:\n", title)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, ": null\n") && !strings.HasSuffix(line, ": {}\n") {
			out.WriteString("  " + line)
		}
	}
}
