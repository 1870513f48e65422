package scheduling

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// among selects the Pods "app=a" in a zone, of the namespaces with some labels.
func among(pairs ...string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: set(pairs)},
	}}
}

func nearTo(terms []corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func farFrom(terms []corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

// What isn't known of namespaces refuses nothing, and what must be near is perhaps where it could
// be.
func TestAffinityOverNamespaces(t *testing.T) {
	red := map[string]*corev1.Namespace{"ns": namespace("ns", "team=red"), "other": namespace("other", "team=blue")}
	lacking := map[string]*corev1.Namespace{"other": namespace("other", "team=blue")}
	unnamed := map[string]*corev1.Namespace{"ns": {}}
	for _, row := range []struct {
		name       string
		namespaces map[string]*corev1.Namespace
		affinity   *corev1.Affinity
		app        string // of the Job
		running    string // where a Pod "app=a" runs in zone 1; empty: nowhere
		guard      *corev1.Affinity
		now        int64
		reason     string
	}{
		{"near a Pod of a namespace with the label", red, nearTo(among("team=blue")), "", "other", nil, 1, affinityUnmet.Message},
		{"near one of a namespace without", red, nearTo(among("team=blue")), "", "ns", nil, 0, affinityUnmet.Message},
		{"near one of a namespace that isn't known", nil, nearTo(among("team=blue")), "", "other", nil, 1, affinityUnmet.Message},
		{"near one that is nowhere", nil, nearTo(among("team=blue")), "", "", nil, 0, affinityUnmet.Message},
		{"near one by the name of its namespace", nil, nearTo(among(corev1.LabelMetadataName + "=other")), "", "ns", nil, 0, affinityUnmet.Message},
		{"near its own, whose namespace isn't there", lacking, nearTo(among("team=red")), "a", "", nil, 1, affinityUnmet.Message},
		{"near its own, whose namespace is another", red, nearTo(among("team=blue")), "a", "", nil, 0, affinityUnmet.Message},
		{"near its own, or perhaps one that runs elsewhere", lacking, nearTo(among("team=red")), "a", "gone", nil, 1, affinityUnmet.Message},
		{"far from its own", red, farFrom(among("team=red")), "a", "", nil, 2, antiAffinityUnmet.Message},
		{"far from its own, whose namespace isn't there", lacking, farFrom(among("team=red")), "a", "", nil, 3, "Insufficient cpu"},
		{"far from one of a namespace with the label", red, farFrom(among("team=blue")), "", "other", nil, 1, antiAffinityUnmet.Message},
		{"far from one of a namespace that isn't known", nil, farFrom(among("team=blue")), "", "other", nil, 2, "Insufficient cpu"},
		{"kept away by the label of its namespace", red, nil, "a", "other", farFrom(among("team=red")), 1, othersAntiAffinity.Message},
		{"its namespace has other labels", red, nil, "a", "other", farFrom(among("team=blue")), 2, "Insufficient cpu"},
		{"its namespace isn't there", lacking, nil, "a", "other", farFrom(among("team=red")), 2, "Insufficient cpu"},
		{"kept away by the name of its namespace", lacking, nil, "a", "other", farFrom(among(corev1.LabelMetadataName + "=ns")), 1, othersAntiAffinity.Message},
		{"its namespace has no labels at all", unnamed, nil, "a", "ns", farFrom(among("team=red")), 2, "Insufficient cpu"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &world{}
			w.node("a", "zone=1").Status.Allocatable["cpu"] = resource.MustParse("2")
			w.node("b", "zone=2").Status.Allocatable["cpu"] = resource.MustParse("1")
			if row.running != "" {
				pod := w.pod("a", "app=a")
				pod.Namespace, pod.Spec.Affinity = row.running, row.guard
			}
			job := jobOf(func(p *corev1.PodTemplateSpec) { p.Labels["app"], p.Spec.Affinity = row.app, row.affinity })
			answer := job.Judge(NewSnapshot(w.nodes, w.pods, row.namespaces), 5)
			reasons := map[string]bool{}
			for _, r := range answer.Reasons {
				reasons[r.Message] = true
			}
			if answer.Now != row.now || !reasons[row.reason] {
				t.Errorf("%d now, %v; want %d, %q", answer.Now, answer.Reasons, row.now, row.reason)
			}
		})
	}
}

// Which of a Job's objects must be gathered.
func TestReadsOf(t *testing.T) {
	for _, row := range []struct {
		name string
		spec corev1.PodSpec
		want Reads
	}{
		{"nothing", corev1.PodSpec{}, Reads{}},
		{"a claim", corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: data}}}, Reads{Claims: true}},
		{"affinity by labels", corev1.PodSpec{Affinity: nearTo(among("team=red"))}, Reads{Namespaces: true}},
		{"anti-affinity by labels", corev1.PodSpec{Affinity: farFrom(among("team=red"))}, Reads{Namespaces: true}},
		{"affinity by the name", corev1.PodSpec{Affinity: nearTo(among(corev1.LabelMetadataName + "=x"))}, Reads{}},
		{"affinity to all namespaces", corev1.PodSpec{Affinity: nearTo(among())}, Reads{}},
	} {
		if got := ReadsOf(&row.spec); got != row.want {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

// The Pods select namespaces for as long as one of them does.
func TestPodsThatSelectNamespaces(t *testing.T) {
	pods, w := NewPods(func(change.Change) {}), &world{}
	plain, guard := w.pod("a"), w.pod("a")
	plain.UID, guard.UID = "plain", "guard"
	guard.Spec.Affinity = farFrom(among("team=red"))
	for _, step := range []struct {
		change func()
		want   bool
	}{
		{func() { pods.Set(plain) }, false},
		{func() { pods.Set(guard) }, true},
		{func() { pods.Remove("guard") }, false},
		{func() { pods.Set(guard) }, true},
		{pods.Forget, false},
	} {
		if step.change(); pods.SelectNamespaces() != step.want {
			t.Errorf("want %t", step.want)
		}
	}
}

// What reads namespaces is found without reading the values of a selector, and in few terms.
func TestReadsOfManyValues(t *testing.T) {
	terms := slices.Repeat([]corev1.PodAffinityTerm{{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: many(20_000)},
	}}}}, maxTerms)
	spec := &corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}
	if cost := costtest.Of(func() { ReadsOf(spec) }); cost > 64<<10 {
		t.Errorf("%d KiB", cost>>10)
	}
	labelled := corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(terms, labelled)
	if ReadsOf(spec).Namespaces {
		t.Error("a term is read that isn't judged")
	}
}
