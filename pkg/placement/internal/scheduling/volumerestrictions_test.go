package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// mounting gives a Pod the claim "data".
func mounting(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: data}}
	return pod
}

// One Pod at a time has a claim of access mode ReadWriteOncePod.
func TestClaimOfOnePod(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	volumes, claim := storage("example.com")
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	expect(t, w.judgeStored(volumes, data, 2), FitsNow, 1, claimInUse.Message) // two never fit
	pod := mounting(w.pod("a"))
	expect(t, w.judgeStored(volumes, data, 1), FitsLater, 0, claimInUse.Message)
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, claimInUse.Message)
	pod.Namespace = "other" // has a claim of its own
	expect(t, w.judgeStored(volumes, data, 1), FitsNow, 1, "")
}
