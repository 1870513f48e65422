package objects_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/objects"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

func late() (*storagev1.StorageClass, *corev1.PersistentVolumeClaim) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "kubernetes.io/no-provisioner"}
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data"}}
	claim.Spec.StorageClassName, claim.Spec.AccessModes = ptr.To("late"), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	return class, claim
}

// What is kept of volumes is enough for the scheduler, and those who wait for volumes are told of
// changes.
func TestVolumes(t *testing.T) {
	changes := 0
	s := objects.New(func(change.Change) { changes++ })
	class, claim := late()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{corev1.LabelHostname: "a"}}}
	node.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("9")}
	expect := func(want scheduling.Verdict, told int) {
		t.Helper()
		if changes != told {
			t.Errorf("told %d times, want %d", changes, told)
		}
		snapshot := scheduling.NewSnapshot([]*corev1.Node{node}, nil, nil)
		snapshot.Volumes = s.Volumes()
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}
		job.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
		if got := scheduling.NewJob(job).Judge(snapshot, 1); got.Verdict != want {
			t.Errorf("%v, want %v: %v", got.Verdict, want, got.Reasons)
		}
	}
	expect(scheduling.FitsNow, 0) // nothing is known
	s.StorageClasses.Know(true)
	s.PersistentVolumes.Know(true)
	s.StorageClasses.Set(objects.SlimStorageClass(class))
	expect(scheduling.FitsNow, 1) // the claims aren't
	s.Claims.Know(true)
	expect(scheduling.Never, 2)
	s.Claims.Set(objects.SlimClaim(claim))
	expect(scheduling.Never, 3) // there is no volume
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: "late", AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
	}}
	pv.Status.Phase = corev1.VolumeAvailable
	s.PersistentVolumes.Set(objects.SlimVolume(pv))
	expect(scheduling.FitsNow, 4)
	s.Admission("n")
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "n", Name: "other"}
	s.PersistentVolumes.Set(objects.SlimVolume(pv))
	s.PersistentVolumes.Set(objects.SlimVolume(pv))
	expect(scheduling.Never, 5) // told once
	s.Claims.Know(false)
	expect(scheduling.FitsNow, 6)
}

// What is compared with each node is small, whatever a worker says.
func TestTopologiesAreBounded(t *testing.T) {
	many := make([]string, 5000)
	terms := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: many}}}}
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}}}
	class := &storagev1.StorageClass{AllowedTopologies: []corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: many}},
	}}}
	left := &storagev1.CSIStorageCapacity{NodeTopology: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Values: many}}}}
	if objects.SlimVolume(pv).Spec.NodeAffinity != nil || objects.SlimStorageClass(class).AllowedTopologies != nil ||
		objects.SlimCSIStorageCapacity(left).NodeTopology.Size() > 0 {
		t.Error("they are kept")
	}
	terms[0].MatchExpressions[0].Values, class.AllowedTopologies[0].MatchLabelExpressions[0].Values = many[:10], many[:10]
	left.NodeTopology.MatchExpressions[0].Values = many[:10]
	if objects.SlimVolume(pv).Spec.NodeAffinity == nil || objects.SlimStorageClass(class).AllowedTopologies == nil ||
		objects.SlimCSIStorageCapacity(left).NodeTopology.Size() == 0 {
		t.Error("those of the usual size aren't kept")
	}
}

// A term that no API server stores selects no node: it would be read, with an error, for each one.
func TestTermsThatSelectNothingArentHeld(t *testing.T) {
	invalid := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "-"}}}
	valid := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: append(slices.Repeat([]corev1.NodeSelectorTerm{invalid}, 40), valid),
	}}}}
	held := objects.SlimVolume(pv).Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(held) != 1 || held[0].MatchExpressions[0].Key != "zone" || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 41 {
		t.Errorf("%d terms are held", len(held))
	}
	pv.Spec.NodeAffinity.Required.NodeSelectorTerms = []corev1.NodeSelectorTerm{invalid}
	if a := objects.SlimVolume(pv).Spec.NodeAffinity; a == nil || a.Required == nil {
		t.Error("a volume that no node reaches seems to be everywhere")
	}
}

// A volume's zones are compared with each node: no more is held of a label than API servers store.
func TestLabelsOfVolumesAreShort(t *testing.T) {
	pv := &corev1.PersistentVolume{}
	pv.Labels = map[string]string{corev1.LabelTopologyZone: strings.Repeat("x__", 100_000), corev1.LabelTopologyRegion: "a__b"}
	if slim := objects.SlimVolume(pv); len(slim.Labels) != 1 || slim.Labels[corev1.LabelTopologyRegion] != "a__b" || len(pv.Labels) != 2 {
		t.Errorf("%d labels are held", len(slim.Labels))
	}
}

// A tenant of a worker says that a claim has a volume with a name of a megabyte, and many of his
// Pods have the claim. The name is looked up for each of them: little of it is held, which names
// nothing.
func TestNamesOfVolumesAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	annotations := map[string]string{corev1.BetaStorageClassAnnotation: long}
	claim := objects.SlimClaim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: long, StorageClassName: &long}})
	slim := func(handle string) *corev1.PersistentVolume {
		return objects.SlimVolume(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			StorageClassName: long, ClaimRef: &corev1.ObjectReference{Namespace: long, Name: long},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: long, VolumeHandle: handle}},
		}})
	}
	pv, other := slim(long+"a"), slim(long+"b")
	class := objects.SlimStorageClass(&storagev1.StorageClass{Provisioner: long})
	capacity := objects.SlimCSIStorageCapacity(&storagev1.CSIStorageCapacity{StorageClassName: long, NodeTopology: &metav1.LabelSelector{}})
	for name, is := range map[string]string{
		"annotation": claim.Annotations[corev1.BetaStorageClassAnnotation], "volume of a claim": claim.Spec.VolumeName, "its class": *claim.Spec.StorageClassName, "class of a volume": pv.Spec.StorageClassName,
		"its claim": pv.Spec.ClaimRef.Name, "its namespace": pv.Spec.ClaimRef.Namespace, "its driver": pv.Spec.CSI.Driver,
		"provisioner": class.Provisioner, "class of a capacity": capacity.StorageClassName,
	} {
		if len(is) != 254 || !strings.HasPrefix(long, is) {
			t.Errorf("%s: %d bytes are held", name, len(is))
		}
	}
	if h := pv.Spec.CSI.VolumeHandle; len(h) > 100 || h == other.Spec.CSI.VolumeHandle || h != slim(long+"a").Spec.CSI.VolumeHandle {
		t.Errorf("a volume is called %.200s", h)
	}
}

// A claim or a volume has very many access modes, which are read for each volume and node.
func TestAccessModesAreFew(t *testing.T) {
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
	for name, all := range map[string][]corev1.PersistentVolumeAccessMode{"repeated": slices.Repeat(once, 1000), "once": once} {
		claim := objects.SlimClaim(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: all}})
		pv := objects.SlimVolume(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{AccessModes: all}})
		if !slices.Equal(claim.Spec.AccessModes, once) || !slices.Equal(pv.Spec.AccessModes, once) {
			t.Errorf("%s: a claim has %d, a volume %d", name, len(claim.Spec.AccessModes), len(pv.Spec.AccessModes))
		}
	}
	var others []corev1.PersistentVolumeAccessMode
	for i := range 1000 {
		others = append(others, corev1.PersistentVolumeAccessMode(fmt.Sprint(i)))
	}
	if pv := objects.SlimVolume(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{AccessModes: others}}); len(pv.Spec.AccessModes) > 10 {
		t.Errorf("a volume has %d modes", len(pv.Spec.AccessModes))
	}
}

// A hostile worker's claim and volume have modes, classes of attributes and a selector with texts
// of a megabyte, which are read for each node.
func TestTextsOfVolumesAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	modes := []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(long)}
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, VolumeMode: ptr.To(corev1.PersistentVolumeMode(long)), VolumeAttributesClassName: &long,
	}}
	if size := objects.SlimVolume(pv).Size(); size > 1024 {
		t.Errorf("a volume has %d bytes", size)
	}
	in := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}}}
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"label": {MatchLabels: map[string]string{"a": long}}, "key of a label": {MatchLabels: map[string]string{long: "a"}},
		"value": in("a", long), "key": in(long, "a"),
	} {
		claim := objects.SlimClaim(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeMode: pv.Spec.VolumeMode, VolumeAttributesClassName: &long, Selector: selector,
		}})
		if size := claim.Size(); size > 1024 {
			t.Errorf("%s: a claim has %d bytes", name, size)
		}
		if _, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector); err == nil || claim.Spec.Selector == nil {
			t.Errorf("%s: the claim selects volumes", name)
		}
	}
	if claim := objects.SlimClaim(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Selector: in("a", "b")}}); !equality.Semantic.DeepEqual(claim.Spec.Selector, in("a", "b")) {
		t.Errorf("a claim selects by %v", claim.Spec.Selector)
	}
}

// A node's drivers are compared with those that each Job needs: no more is held of them than nodes
// have.
func TestDriversOfANodeAreBounded(t *testing.T) {
	node := &storagev1.CSINode{}
	node.Spec.Drivers = append(make([]storagev1.CSINodeDriver, 10), storagev1.CSINodeDriver{Name: strings.Repeat("x", 10_000)})
	if slim := objects.SlimCSINode(node); len(slim.Spec.Drivers) != 10 {
		t.Errorf("of 10 drivers, %d are held", len(slim.Spec.Drivers))
	}
	node.Spec.Drivers = make([]storagev1.CSINodeDriver, 100_000)
	if slim := objects.SlimCSINode(node); len(slim.Spec.Drivers) > 100 {
		t.Errorf("%d drivers are held", len(slim.Spec.Drivers))
	}
}
