package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// zones are templates of nodes with 4 CPUs, up to so many in each zone.
func zones(maxNodes int32, names ...string) *v1alpha1.Autoscaling {
	spec := &v1alpha1.Autoscaling{}
	for _, zone := range names {
		spec.NodeTemplates = append(spec.NodeTemplates, v1alpha1.NodeTemplate{
			Name: zone, Labels: set([]string{corev1.LabelTopologyZone + "=" + zone}), MaxNodes: maxNodes,
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")},
		})
	}
	return spec
}

func (w *world) judgeScaling(
	spec *v1alpha1.Autoscaling, observed *autoscaling.Observed, demands []capacity.Demand, j *Job, wanted int64,
) Answer {
	s := NewSnapshot(w.nodes, w.pods, nil)
	var nodes []*capacity.Node
	for _, n := range s.Nodes {
		nodes = append(nodes, n.Node)
	}
	s.Autoscaling = autoscaling.NewRoom(autoscaling.GrowthOf(spec, observed), nodes, demands)
	return j.Judge(s, wanted)
}

func TestScaleUp(t *testing.T) {
	zone := func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = set([]string{corev1.LabelTopologyZone + "=a"}) }
	large := func(p *corev1.PodTemplateSpec) { cpu(&p.Spec, "5") }
	spreading := func(p *corev1.PodTemplateSpec) {
		p.Labels = map[string]string{"app": "x"}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}
	}
	busy := func() *world {
		w := full(0, 0)
		w.nodes[0].Labels[corev1.LabelTopologyZone] = "a"
		return w
	}
	waits := []capacity.Demand{{Shape: jobOf(plain).shape, Pods: 8}}
	for name, row := range map[string]struct {
		world   *world
		spec    *v1alpha1.Autoscaling
		demands []capacity.Demand
		job     *Job
		wanted  int64
		verdict Verdict
		// now and after scale-up.
		now, after int64
		reason     string
	}{
		"room now":                      {full(0), zones(2, "a"), nil, jobOf(plain), 2, FitsNow, 2, 0, ""},
		"no node at all":                {&world{}, zones(2, "a"), nil, jobOf(plain), 8, FitsAfterScaleUp, 0, 8, ""},
		"some now, the rest after":      {full(0), zones(2, "a"), nil, jobOf(plain), 5, FitsAfterScaleUp, 2, 5, "Insufficient cpu"},
		"wider than all nodes that may": {&world{}, zones(2, "a"), nil, jobOf(plain), 50, FitsAfterScaleUp, 0, 8, ""},
		"wider, and some is in use":     {busy(), zones(2, "a"), nil, jobOf(plain), 50, FitsLater, 0, 0, "Insufficient cpu"},
		"others wait for these nodes":   {busy(), zones(3, "a"), waits, jobOf(plain), 1, FitsLater, 0, 0, "Insufficient cpu"},
		"others wait, and no node yet":  {&world{}, zones(2, "a"), waits, jobOf(plain), 1, FitsLater, 0, 0, atLimits.Message},
		"another zone":                  {&world{}, zones(2, "b"), nil, jobOf(zone), 1, Never, 0, 0, "node(s) didn't match Pod's node affinity/selector"},
		"larger than any node":          {full(0), zones(2, "b"), nil, jobOf(large), 1, Never, 0, 0, "Insufficient cpu"},
		"spread over both zones":        {&world{}, zones(2, "a", "b"), nil, jobOf(spreading), 4, FitsAfterScaleUp, 0, 4, ""},
		"spread, and one zone is full":  {busy(), zones(1, "a"), nil, jobOf(spreading), 2, FitsLater, 0, 0, "Insufficient cpu"},
		"a gang":                        {&world{}, zones(2, "a"), nil, gang(8, nil), 8, FitsAfterScaleUp, 0, 8, ""},
		"a gang that is too large":      {&world{}, zones(2, "a"), nil, gang(9, nil), 9, Never, 0, 0, tooFew.Message},
	} {
		t.Run(name, func(t *testing.T) {
			a := row.world.judgeScaling(row.spec, nil, row.demands, row.job, row.wanted)
			expect(t, a, row.verdict, row.now, row.reason)
			if a.AfterScaleUp != row.after {
				t.Errorf("%d Pods after scale-up, want %d", a.AfterScaleUp, row.after)
			}
		})
	}
}

// While all groups that suit are in backoff it's said so, whatever the limits are.
func TestScaleUpIsPaused(t *testing.T) {
	backoff := &autoscaling.Observed{Groups: map[string]autoscaling.NodeGroup{"a": {MaxNodes: 9, Backoff: true}}}
	for name, row := range map[string]struct {
		spec    *v1alpha1.Autoscaling
		verdict Verdict
		reason  string
	}{
		"the only one": {zones(2, "a"), FitsLater, paused.Message},
		"one of two":   {zones(2, "a", "b"), FitsAfterScaleUp, ""},
		"another one":  {zones(0, "b"), FitsLater, atLimits.Message},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, (&world{}).judgeScaling(row.spec, backoff, nil, jobOf(plain), 1), row.verdict, 0, row.reason)
		})
	}
}
