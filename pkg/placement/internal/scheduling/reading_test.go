package scheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/util/costtest"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// wordy have selectors of so many values together, in one field each.
func wordy(values int) map[string]func(*corev1.PodTemplateSpec) {
	terms := podTerms(2, values/2)
	return map[string]func(*corev1.PodTemplateSpec){
		capacity.AffinityField: func(p *corev1.PodTemplateSpec) {
			affinityOf(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		},
		capacity.AntiAffinityField: func(p *corev1.PodTemplateSpec) {
			affinityOf(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		},
		capacity.SpreadField: func(p *corev1.PodTemplateSpec) {
			for _, term := range terms {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
					MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: term.LabelSelector,
				})
			}
		},
	}
}

// To read a Job's selectors, and those of its mates, is work before any worker is looked at.
func TestReadingSelectorsIsWork(t *testing.T) {
	const values = 4_500
	all := func(p *corev1.PodTemplateSpec) {
		for _, change := range wordy(values) {
			change(p)
		}
	}
	for field, change := range wordy(values) {
		j := jobOf(change)
		if work := mostWork - *j.left; work < values*capacity.ReadWeight {
			t.Errorf("%s: work %d", field, work)
		}
		if j.Lightly(); j.Work() < 0.3 || j.TooMuch() {
			t.Errorf("%s: %v of the work that is judged lightly", field, j.Work())
		}
	}
	mate := Mate{pod("mate", 1, "1", all).job(), 1}
	j := jobOf(func(*corev1.PodTemplateSpec) {})
	NewGroup(j, []Mate{mate})
	if work := mostWork - *j.left; work < 3*values*capacity.ReadWeight {
		t.Errorf("a mate: work %d", work)
	}
	j.Lightly()
	if g := NewGroup(j, []Mate{mate, mate, mate, mate}); !j.TooMuch() || len(g.mates) > 2 {
		t.Errorf("%d mates are read, %v of the work that is judged lightly", len(g.mates), j.Work())
	}
}

// Labels that are added to a selector are added at once.
func TestLabelsOfATermAreAddedAtOnce(t *testing.T) {
	own, required := map[string]string{}, []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{}}}}
	for i := range 150 {
		key := fmt.Sprint("key-", i)
		own[key], required[0].LabelSelector.MatchLabels["other-"+key] = "x", "x"
		required[0].MatchLabelKeys = append(required[0].MatchLabelKeys, key)
	}
	var terms []term
	if cost := costtest.Of(func() { terms = termsOf("ns", labels.Set(own), required) }); cost > 512<<10 {
		t.Errorf("%d KiB", cost>>10)
	}
	if requirements, _ := terms[0].selector.Requirements(); len(requirements) != 300 {
		t.Errorf("%d requirements", len(requirements))
	}
}
