package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods that the Job must be near end by themselves, and so do others. The Job waits for the others.
func TestJobNearPodsThatEnd(t *testing.T) {
	near := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
			},
		}}
	})
	w := &world{}
	w.node("a", "zone=1") // of 4 CPUs
	w.node("b", "zone=2")
	w.pod("a", "app=a")
	cpu(&w.pod("a", "app=other").Spec, "2")
	expect(t, w.judge(near, 3), FitsLater, 1, "Insufficient cpu")
	w.pods = w.pods[:1]
	expect(t, w.judge(near, 4), FitsNow, 3, "Insufficient cpu") // more never fit near that Pod
	// Of two such Pods, the one that leaves more room may be the last.
	larger := w.pod("a", "app=a")
	cpu(&larger.Spec, "2")
	expect(t, w.judge(near, 4), FitsLater, 1, "Insufficient cpu")
	if idle := w.judge(near, 4).Idle; idle != 3 {
		t.Errorf("%d Pods fit in the idle worker, want 3", idle)
	}
	// One that lasts is there anyway.
	larger.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if idle := w.judge(near, 4).Idle; idle != 2 {
		t.Errorf("%d Pods fit in the idle worker, want 2", idle)
	}
	// One that is being deleted won't be there.
	w.pods = w.pods[:1]
	w.pods[0].DeletionTimestamp = &metav1.Time{}
	if idle := w.judge(near, 4).Idle; idle != 0 {
		t.Errorf("%d Pods fit in the idle worker, want none", idle)
	}
}
