package scheduling

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Whatever nodes the scheduler prefers, at least as many Pods as that find one.
func TestSoManyFitInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			name := fmt.Sprint(i)
			anyNode(t, w, name)
			for range rapid.IntRange(0, 4).Draw(t, "pods") {
				pod := w.pod(name, "app="+rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app"))
				if rapid.Bool().Draw(t, "lasts") {
					pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
				}
			}
		}
		job := jobOf(func(p *corev1.PodTemplateSpec) { anyBounds(t, p) })
		v := view{NewSnapshot(w.nodes, w.pods, nil), rapid.SampledFrom([]Moment{Now, Idle, Ever}).Draw(t, "moment"), nil}
		places, _ := placesOf(v, job.allFilters(v))
		states := job.states(v)
		if len(states) == 0 {
			return
		}
		sure := inAnyOrder(v, places, states)
		if pods := anyTrial(t, places, states); sure > pods {
			t.Errorf("%d Pods find nodes in any order, and only %d did", sure, pods)
		}
	})
}

// anyTrial puts Pods on nodes in any order until none takes one.
func anyTrial(t *rapid.T, places []place, states []state) int64 {
	for pods := int64(0); ; pods++ {
		var open []*place
		for i := range places {
			if p := &places[i]; p.slots > 0 && reasonOf(states, p) == nil {
				open = append(open, p)
			}
		}
		if len(open) == 0 {
			return pods
		}
		p := rapid.SampledFrom(open).Draw(t, "place")
		p.slots--
		for _, s := range states {
			s.add(p)
		}
	}
}

func anyBounds(t *rapid.T, p *corev1.PodTemplateSpec) {
	p.Labels["app"] = "x"
	anyNodeChoice(t, &p.Spec)
	p.Spec.NodeName = ""
	selector := func() *metav1.LabelSelector {
		return rapid.SampledFrom([]*metav1.LabelSelector{
			{MatchLabels: map[string]string{"app": "x"}}, {MatchLabels: map[string]string{"app": "y"}}, {},
		}).Draw(t, "selector")
	}
	keys := rapid.SampledFrom([]string{"zone", "disk", "absent", corev1.LabelHostname})
	for range rapid.IntRange(0, 3).Draw(t, "constraints") {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: rapid.Int32Range(1, 3).Draw(t, "maxSkew"), TopologyKey: keys.Draw(t, "key"),
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector(),
		}
		if rapid.Bool().Draw(t, "honors") {
			honor := corev1.NodeInclusionPolicyHonor
			c.NodeTaintsPolicy = &honor
		}
		if rapid.IntRange(0, 3).Draw(t, "least") == 0 {
			few := int32(3)
			c.MinDomains = &few
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
	if rapid.Bool().Draw(t, "avoids") {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: keys.Draw(t, "key"), LabelSelector: selector()}},
		}
	}
}

// What mostly is asked needs no trial.
func TestInAnyOrderIsKnown(t *testing.T) {
	avoid := func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}},
			}},
		}}
	}
	w := &world{}
	for i := range 6 { // of 4 CPUs each
		w.node(fmt.Sprint(i), fmt.Sprintf("zone=%d", i%3))
	}
	w.pod("0", "app=app-0")
	for _, row := range []struct {
		of     string
		change func(*corev1.PodTemplateSpec)
		pods   int64
	}{
		{"zones", func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone") }, 23},
		{"nodes", func(p *corev1.PodTemplateSpec) { spreadOver(p, corev1.LabelHostname) }, 23},
		{"zones and nodes", func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone", corev1.LabelHostname) }, 17},
		{"nodes with no such Pod", func(p *corev1.PodTemplateSpec) { p.Labels["app"] = "app-0"; avoid(p) }, 5},
		{"such nodes of zones", func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone"); avoid(p) }, 5},
		{"nodes and what no node has", func(p *corev1.PodTemplateSpec) { spreadOver(p, corev1.LabelHostname, "rack") }, 0},
		{"more than two sorts", func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone", corev1.LabelHostname, "rack") }, 0},
	} {
		job, v := jobOf(row.change), view{NewSnapshot(w.nodes, w.pods, nil), Now, nil}
		places, _ := placesOf(v, job.allFilters(v))
		if pods := inAnyOrder(v, places, job.states(v)); pods != row.pods {
			t.Errorf("%s: %d Pods, want %d", row.of, pods, row.pods)
		}
		if a := job.Judge(v.Snapshot, math.MaxInt32); a.Now < row.pods {
			t.Errorf("%s: %d Pods fit, fewer than the %d that do in any order", row.of, a.Now, row.pods)
		}
	}
}
