package scheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// counter counts what a selector is compared with.
type counter struct {
	labels.Selector
	comparisons *int
}

func (c counter) Matches(l labels.Labels) bool {
	*c.comparisons++
	return c.Selector.Matches(l)
}

// Who of a group wants to be near whom is found out once in a judgement, and that is work.
func TestAffinityOfAGroupIsWork(t *testing.T) {
	const values = 250
	for name, cpu := range map[string]string{"it fits": "1", "it never does": "5"} {
		comparisons, work := nearOneOf(t, cpu, values)
		if most := 5 * (1 + MaxMates) * (1 + MaxMates); comparisons < MaxMates || comparisons > most {
			t.Errorf("%s: %d comparisons, want %d at most", name, comparisons, most)
		}
		if _, others := nearOneOf(t, cpu, 0); work-others < values*comparisons {
			t.Errorf("%s: %d comparisons with %d values are %d of the work", name, comparisons, values, work-others)
		}
	}
}

// nearOneOf judges a group whose members want to be near Pods that have one of some values or are
// their own, spread over those, and keep apart from all others. It counts how often these selectors
// are compared.
func nearOneOf(t *testing.T, cpu string, values int) (comparisons, work int) {
	var kinds []kindOfPods
	for i := range 1 + MaxMates {
		name := fmt.Sprint("k", i)
		kinds = append(kinds, pod(name, 1, cpu, func(p *corev1.PodTemplateSpec) {
			wanted, avoided := podTerms(1, values), podTerms(maxTerms, 0)
			in := &wanted[0].LabelSelector.MatchExpressions[0]
			wanted[0].TopologyKey, in.Key, in.Values = "zone", "role", append(in.Values, name)
			for i := range avoided {
				exists := &avoided[i].LabelSelector.MatchExpressions[0]
				avoided[i].TopologyKey, exists.Key, exists.Operator = "zone", "role", metav1.LabelSelectorOpExists
			}
			affinityOf(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: wanted}
			affinityOf(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: avoided}
			spread(name, "zone")(p)
			p.Spec.TopologySpreadConstraints[0].LabelSelector = wanted[0].LabelSelector
		}))
	}
	g := asking(kinds, 0)
	for _, m := range append([]member{{job: g.own}}, g.mates...) {
		for _, s := range []*podSelector{&m.job.affinity[0].selector, &m.job.spread[0].selector} {
			s.Selector = counter{s.Selector, &comparisons}
		}
	}
	before := *g.own.left
	if a := g.Judge(NewSnapshot(zonesOf(1, 2, 0).nodes, nil, nil), 1); len(a.Unjudged) > 0 {
		t.Errorf("unjudged: %v", a.Unjudged)
	}
	return comparisons, before - *g.own.left
}
