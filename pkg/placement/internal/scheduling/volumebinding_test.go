package scheduling

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// storage has one claim "data" of class "late", which waits for its first Pod.
func storage(provisioner string) (*Volumes, *corev1.PersistentVolumeClaim) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("late"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")},
		},
	}
	return &Volumes{
		Claims:  map[string]map[string]*corev1.PersistentVolumeClaim{"ns": {"data": claim}},
		Volumes: map[string]*corev1.PersistentVolume{},
		Classes: map[string]*storagev1.StorageClass{"late": {
			ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: provisioner,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		}},
	}, claim
}

// local adds a volume that is on one node.
func (v *Volumes) local(name, node string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "late", Capacity: list("storage", "2Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	v.Volumes[name] = pv
	return pv
}

func (w *world) judgeStored(volumes *Volumes, source corev1.VolumeSource, wanted int64) Answer {
	s := NewSnapshot(w.nodes, w.pods, nil)
	s.Volumes = &Volumes{ // tests change theirs
		Claims: volumes.Claims, Volumes: volumes.Volumes, Classes: volumes.Classes,
		Nodes: volumes.Nodes, Drivers: volumes.Drivers, Capacities: volumes.Capacities,
	}
	return jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }).Judge(s, wanted)
}

var data = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}

func TestBoundClaim(t *testing.T) {
	w := &world{}
	w.node("a", "topology.kubernetes.io/zone=1")
	w.node("b", "topology.kubernetes.io/zone=2")
	volumes, claim := storage("example.com")
	claim.Spec.VolumeName = "pv"
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, volumeGone.Message)
	pv := volumes.local("pv", "b")
	expect(t, w.judgeStored(volumes, data, 5), FitsNow, 4, "Insufficient cpu")
	pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "c"
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, volumeElsewhere.Message)
	pv.Spec.NodeAffinity = nil
	expect(t, w.judgeStored(volumes, data, 8), FitsNow, 8, "")
	pv.Labels = map[string]string{corev1.LabelFailureDomainBetaZone: "1__3"}
	expect(t, w.judgeStored(volumes, data, 4), FitsNow, 4, "")
	pv.Labels[corev1.LabelFailureDomainBetaZone] = "3"
	expect(t, w.judgeStored(volumes, data, 4), Never, 0, otherZone.Message)
	delete(volumes.Claims["ns"], "data")
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, `persistentvolumeclaim "data" not found`)
	data := data.DeepCopy()
	data.PersistentVolumeClaim.ClaimName = strings.Repeat("x", 1<<20)
	expect(t, w.judgeStored(volumes, *data, 1), Never, 0, `persistentvolumeclaim "`+strings.Repeat("x", 253)+`" not found`)
}

func TestClaimThatWaitsForItsFirstPod(t *testing.T) {
	w := &world{}
	w.node("a", "zone=1")
	w.node("b", "zone=2")
	volumes, _ := storage("example.com")
	expect(t, w.judgeStored(volumes, data, 8), FitsNow, 8, "")
	volumes.Classes["late"].AllowedTopologies = []corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"2"}}},
	}}
	expect(t, w.judgeStored(volumes, data, 4), FitsNow, 4, "")
	volumes, claim := storage("kubernetes.io/no-provisioner")
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, noVolume.Message)
	volumes.local("on-b", "b")
	volumes.local("on-a", "a").Spec.Capacity["storage"] = resource.MustParse("1Mi")
	expect(t, w.judgeStored(volumes, data, 4), FitsNow, 4, "")
	volumes.Classes["late"].VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate)
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, "pod has unbound immediate PersistentVolumeClaims")
	claim.Spec.StorageClassName = ptr.To("other")
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, `storageclass "other" not found`)
}

// Each Pod has a volume of its own.
func TestEphemeralVolumes(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	volumes, claim := storage("kubernetes.io/no-provisioner")
	each := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}}
	expect(t, w.judgeStored(volumes, each, 1), Never, 0, noVolume.Message)
	volumes.local("one", "a")
	volumes.local("two", "a")
	volumes.local("three", "b")
	expect(t, w.judgeStored(volumes, each, 3), FitsNow, 3, "")
	expect(t, w.judgeStored(volumes, each, 4), FitsNow, 3, noVolume.Message) // more never fit
}

// Small claims get the small volumes, in whatever order the Pod has them.
func TestSmallClaimsFirst(t *testing.T) {
	w := &world{}
	w.node("a")
	volumes, claim := storage("kubernetes.io/no-provisioner")
	volumes.local("large", "a").Spec.Capacity = list("storage", "5Gi")
	volumes.local("small", "a")
	volumes.local("tiny", "a").Spec.Capacity = list("storage", "1Mi")
	s := NewSnapshot(w.nodes, w.pods, nil)
	s.Volumes = volumes
	job := jobOf(func(p *corev1.PodTemplateSpec) {
		for _, name := range []string{"4Gi", "2Gi", "1Mi"} {
			c := claim.Spec.DeepCopy()
			c.Resources.Requests = list("storage", name)
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: *c}},
			}})
		}
	})
	expect(t, job.Judge(s, 1), FitsNow, 1, "")
}

// However many volumes are used already, finding some for one more Pod copies none of them, and
// leaves them as they are.
func TestUsedVolumesArentCopied(t *testing.T) {
	const many = 100_000
	w := &world{}
	w.node("a")
	volumes, claim := storage("kubernetes.io/no-provisioner")
	candidates := []*corev1.PersistentVolume{volumes.local("one", "a"), volumes.local("two", "a")}
	s := &volumesState{Volumes: volumes, in: view{NewSnapshot(w.nodes, nil, nil), Now, nil}, used: map[string]*corev1.PersistentVolume{}}
	for i := range many {
		s.used[fmt.Sprint("used-", i)] = candidates[0]
	}
	for claims, want := range map[int]*Reason{1: nil, 2: nil, 3: &noVolume} {
		bindings := make([]binding, claims)
		for i := range bindings {
			bindings[i] = binding{claim: claim, candidates: candidates}
		}
		var reason *Reason
		cost := costtest.Of(func() { reason = s.match(bindings, w.nodes[0], s.used) })
		if reason != want || cost > 1<<20 || len(s.used) != many {
			t.Errorf("%d claims: %v, %d KiB, %d are used", claims, reason, cost>>10, len(s.used))
		}
		if claims > 1 && bindings[0].pv == bindings[1].pv {
			t.Errorf("%d claims: two get one volume", claims)
		}
	}
}

// A volume is being made for the node that the scheduler chose.
func TestClaimWithASelectedNode(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	volumes, claim := storage("example.com")
	claim.Annotations = map[string]string{volume.AnnSelectedNode: "b"}
	// when it's there, the class allows it on node a
	expect(t, w.judgeStored(volumes, data, 8), FitsNow, 8, "")
	w.nodes[1].Spec.Unschedulable = true
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, noVolume.Message)
}

// The first Pod may choose the node with the least room for all.
func TestFirstPodChoosesTheVolume(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b").Status.Allocatable["cpu"] = resource.MustParse("2")
	volumes, _ := storage("kubernetes.io/no-provisioner")
	volumes.local("on-a", "a")
	volumes.local("on-b", "b")
	expect(t, w.judgeStored(volumes, data, 4), FitsNow, 2, "Insufficient cpu")
}
