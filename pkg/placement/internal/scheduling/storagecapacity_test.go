package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestStorageThatDriversPublish(t *testing.T) {
	w := &world{}
	w.node("a", "zone=1")
	w.node("b", "zone=2")
	volumes, _ := storage("example.com")
	driver := &storagev1.CSIDriver{}
	volumes.Drivers = map[string]*storagev1.CSIDriver{"example.com": driver}
	volumes.Capacities = map[string][]*storagev1.CSIStorageCapacity{}
	expect(t, w.judgeStored(volumes, data, 8), FitsNow, 8, "")
	driver.Spec.StorageCapacity = ptr.To(true)
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, noSpace.Message)
	capacity := &storagev1.CSIStorageCapacity{StorageClassName: "late", Capacity: ptr.To(resource.MustParse("1Gi"))}
	volumes.Capacities["late"] = []*storagev1.CSIStorageCapacity{capacity}
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, noSpace.Message) // no node can use it
	capacity.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "2"}}
	// the first Pod goes to node b: then the volume is there
	expect(t, w.judgeStored(volumes, data, 8), FitsNow, 8, "")
	w.nodes[1].Spec.Unschedulable = true
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, noSpace.Message)
	capacity.NodeTopology.MatchLabels["zone"] = "1"
	capacity.MaximumVolumeSize = ptr.To(resource.MustParse("1Mi"))
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, noSpace.Message)
	volumes.Capacities = nil // not known
	expect(t, w.judgeStored(volumes, data, 4), FitsNow, 4, "")
}

// A Job whose Pods have a volume each, and that is wider than the storage, doesn't wait for more
// while nobody can free some.
func TestAJobThatIsWiderThanTheStorage(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	volumes, claim := storage("example.com")
	each := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}}
	volumes.Drivers = map[string]*storagev1.CSIDriver{"example.com": {Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}}
	volumes.Capacities = map[string][]*storagev1.CSIStorageCapacity{"late": {{
		StorageClassName: "late", Capacity: ptr.To(resource.MustParse("1Gi")),
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: "a"}},
	}}}
	expect(t, w.judgeStored(volumes, each, 8), FitsNow, 4, "Insufficient cpu")
	mounting(w.pod("a"))
	expect(t, w.judgeStored(volumes, each, 8), FitsLater, 3, "Insufficient cpu")
}
