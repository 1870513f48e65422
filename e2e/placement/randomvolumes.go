package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// selectedNode is the scheduler's mark on a claim for which a driver makes a volume.
const selectedNode = "volume.kubernetes.io/selected-node"

// storageDriver makes volumes.
const storageDriver = "csi.example.com"

// volumes gives the pair volumes, Pods that run some, and a Job that wants others.
func (s source) volumes(p *pair) {
	o := &p.volumeObjects
	o.StorageClasses = s.storageClasses()
	for _, n := range p.Nodes {
		for i := range s.IntN(3) {
			o.PersistentVolumes = append(o.PersistentVolumes, s.local(fmt.Sprintf("%s-%d", n.Name, i), n.Name))
		}
		if s.chance(50) {
			o.CSINodes = append(o.CSINodes, s.csiNode(n.Name))
		}
	}
	if s.chance(40) {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: storageDriver}}
		driver.Spec.PreventPodSchedulingIfMissing = ptr.To(s.chance(50))
		driver.Spec.StorageCapacity = ptr.To(s.chance(60))
		o.CSIDrivers, o.CSIStorageCapacities = []*storagev1.CSIDriver{driver}, s.storageCapacities(p.Nodes)
	}
	s.bound(p, "data", own)
	late, made, pending := s.volumeClaim("late", "local"), s.volumeClaim("new", "dynamic"), s.volumeClaim("pending", "immediate")
	if s.chance(10) {
		made.Annotations = map[string]string{selectedNode: p.Nodes[s.IntN(len(p.Nodes))].Name}
	}
	if s.chance(5) {
		late.Status.Phase, late.Spec.VolumeName = corev1.ClaimLost, "gone"
	}
	o.PersistentVolumeClaims = append(o.PersistentVolumeClaims, late, made, pending)
	for _, pod := range p.Pods {
		switch {
		case s.chance(15):
			s.bound(p, "of-"+pod.Name, pod.Namespace)
			mount(&pod.Spec, claimed("of-"+pod.Name))
		case s.chance(10) && pod.Namespace == own:
			mount(&pod.Spec, claimed("data"))
		}
	}
	spec := &p.Job.Spec.Template.Spec
	for len(spec.Volumes) == 0 || s.chance(25) {
		mount(spec, s.volume())
	}
}

func mount(spec *corev1.PodSpec, source corev1.VolumeSource) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", len(spec.Volumes)), VolumeSource: source})
}

func claimed(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

func (s source) volume() corev1.VolumeSource {
	switch name := s.of("data", "data", "late", "late", "new", "new", "pending", "absent", "local", "local", "dynamic", "dynamic", "dynamic"); name {
	case "local", "dynamic":
		spec := s.volumeClaim("", name).Spec
		return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}}
	default:
		return claimed(name)
	}
}

func (s source) storageClasses() []*storagev1.StorageClass {
	waits, immediate := ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), ptr.To(storagev1.VolumeBindingImmediate)
	dynamic := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "dynamic"}, Provisioner: storageDriver, VolumeBindingMode: waits}
	if s.chance(40) {
		dynamic.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: zoneKey, Values: []string{s.of("a", "b"), "c"}},
		}}}
	}
	return []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: waits},
		dynamic,
		{ObjectMeta: metav1.ObjectMeta{Name: "immediate"}, Provisioner: storageDriver, VolumeBindingMode: immediate},
	}
}

// local volume of a node, or one of the driver's that several nodes reach.
func (s source) local(name, node string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity:    corev1.ResourceList{"storage": resource.MustParse(s.of("1Gi", "5Gi", "10Gi"))},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}, StorageClassName: "local",
	}
	key, value := corev1.LabelHostname, node
	if s.chance(20) {
		pv.Spec.StorageClassName, key, value = "dynamic", zoneKey, s.of("a", "b", "c")
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: storageDriver, VolumeHandle: name}
	} else {
		pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/disk"}
	}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}}
	pv.Status.Phase = corev1.VolumeAvailable
	return pv
}

func (s source) volumeClaim(name, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name}}
	c.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse(s.of("1Gi", "1Gi", "4Gi", "8Gi"))}},
	}
	if s.chance(20) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	return c
}

// bound adds a claim with its volume.
func (s source) bound(p *pair, name, namespace string) {
	pv := s.local("pv-"+name, s.of("n0", "n1", "n2"))
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: storageDriver, VolumeHandle: name}}
	switch s.IntN(3) {
	case 0:
		pv.Spec.NodeAffinity = nil
	case 1:
		pv.Spec.NodeAffinity, pv.Labels = nil, map[string]string{zoneKey: s.of("a", "b", "c")}
	}
	pv.Spec.StorageClassName, pv.Status.Phase = "dynamic", corev1.VolumeBound
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
	claim := s.volumeClaim(name, "dynamic")
	claim.Namespace, claim.Spec.VolumeName, claim.Status.Phase = namespace, pv.Name, corev1.ClaimBound
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	p.PersistentVolumeClaims = append(p.PersistentVolumeClaims, claim)
	if !s.chance(5) {
		p.PersistentVolumes = append(p.PersistentVolumes, pv)
	}
}

func (s source) csiNode(name string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: s.of(storageDriver, storageDriver, "other.example.com"), NodeID: name}}
	if s.chance(70) {
		n.Spec.Drivers[0].Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(int32(s.IntN(4)))}
	}
	return n
}

// storageCapacities are what a driver has left: for each node, or for each zone.
func (s source) storageCapacities(nodes []*corev1.Node) []*storagev1.CSIStorageCapacity {
	var all []*storagev1.CSIStorageCapacity
	publish := func(key, value string) {
		c := &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: fmt.Sprint("space-", len(all))}, StorageClassName: s.of("dynamic", "dynamic", "immediate"),
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
			Capacity:     ptr.To(resource.MustParse(s.of("0", "2Gi", "5Gi", "20Gi"))),
		}
		if s.chance(20) {
			c.MaximumVolumeSize = ptr.To(resource.MustParse(s.of("1Gi", "2Gi")))
		}
		all = append(all, c)
	}
	for _, zone := range []string{"a", "b", "c"} {
		publish(zoneKey, zone)
	}
	for _, n := range nodes {
		publish(corev1.LabelHostname, n.Name)
	}
	return all[:s.IntN(len(all)+1)]
}
