package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// A worker whose nodes aren't known takes every Job whose claims are there.
func TestVolumesWithoutNodes(t *testing.T) {
	judge := func(volumes *Volumes, sources ...corev1.VolumeSource) Answer {
		return jobOf(func(p *corev1.PodTemplateSpec) {
			for _, source := range sources {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: source})
			}
		}).Judge(&Snapshot{NodesUnknown: true, Volumes: volumes},

			3)

	}
	volumes, claim := storage("example.com")
	expect(t, judge(volumes), FitsNow, 3, "")
	expect(t, judge(volumes, data), FitsNow, 3, "")
	volumes.Classes["late"].VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate)
	expect(t, judge(volumes, data), FitsLater, 0, "pod has unbound immediate PersistentVolumeClaims")
	volumes.local("there", "a")
	claim.Spec.VolumeName = "there"
	expect(t, judge(volumes, data), FitsNow, 3, "")
	claim.Spec.VolumeName = "gone"
	expect(t, judge(volumes, data), Never, 0, volumeGone.Message)
	delete(volumes.Claims["ns"], "data")
	expect(t, judge(volumes, data), Never, 0, `persistentvolumeclaim "data" not found`)
	expect(t, judge(nil, data), FitsNow, 3, "")
}

// A Job waits for what is being listed.
func TestWhatIsBeingListed(t *testing.T) {
	w := &world{}
	w.node("a")
	s := NewSnapshot(w.nodes, w.pods, nil)
	expect(t, jobOf(plain).Judge(s, 1), FitsNow, 1, "")
	s.AwaitVolumes()
	expect(t, jobOf(plain).Judge(s, 1), FitsLater, 0, "the worker's volumes are being listed")
}
