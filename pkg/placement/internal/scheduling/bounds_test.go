package scheduling

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Job of very many Pods, in a worker that says that it has room for them all, is answered at
// once.
func TestTrialsAreBounded(t *testing.T) {
	w := &world{}
	for i := range 200 {
		node := w.node(fmt.Sprint(i), fmt.Sprintf("zone=%d", i%3))
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1G"), "pods": resource.MustParse("1G")}
	}
	wide := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Labels["app"] = "app-0"
		spreadOver(p, corev1.LabelHostname)
	})
	expect(t, w.judge(wide, math.MaxInt32), FitsNow, math.MaxInt32, "")
}

// Of very many terms, the first are judged.
func TestTermsAreBounded(t *testing.T) {
	job := jobOf(func(p *corev1.PodTemplateSpec) {
		terms := make([]corev1.PodAffinityTerm, 1000)
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
		}
		p.Spec.TopologySpreadConstraints = make([]corev1.TopologySpreadConstraint, 1000)
		for i := range p.Spec.TopologySpreadConstraints {
			p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.DoNotSchedule
		}
	})
	if len(job.affinity) != maxTerms || len(job.antiAffinity) != maxTerms || len(job.spread) != maxTerms {
		t.Errorf("%d, %d and %d are judged", len(job.affinity), len(job.antiAffinity), len(job.spread))
	}
}

// Of very many kinds of Pods that keep others away, some are judged: the last one isn't.
func TestGuardsAreBounded(t *testing.T) {
	for _, row := range []struct {
		kinds   int
		verdict Verdict
	}{{maxGuards - 1, FitsLater}, {maxGuards, FitsNow}} {
		w := &world{}
		node := w.node("a", "zone=1")
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1M"), "pods": resource.MustParse("1M")}
		for i := range row.kinds {
			guardedPod(w.pod("a", fmt.Sprintf("kind=%d", i)))
		}
		last := w.pod("a", "kind=last")
		guardedPod(last)
		last.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["app"] = "job"
		answer := w.judge(jobOf(func(p *corev1.PodTemplateSpec) { p.Labels["app"] = "job" }), 1)
		if answer.Verdict != row.verdict {
			t.Errorf("%d other kinds: %v, want %v", row.kinds, answer.Verdict, row.verdict)
		}
	}
}

// A Job of more Pods than are tried, in a worker that has no room for all: there is a reason.
func TestMorePodsThanAreTried(t *testing.T) {
	w := &world{}
	for _, name := range []string{"a", "b"} {
		node := w.node(name)
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1M"), "pods": resource.MustParse("1G")}
	}
	wide := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Labels["app"] = "app-0"
		spreadOver(p, corev1.LabelHostname)
	})
	w.pod("a", "app=other")
	expect(t, w.judge(wide, 2_000_000), FitsLater, 1_999_999, "Insufficient cpu")
}

func spreadOver(p *corev1.PodTemplateSpec, keys ...string) {
	p.Labels["app"] = "app-0"
	for _, key := range keys {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 3, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}},
		})
	}
}
