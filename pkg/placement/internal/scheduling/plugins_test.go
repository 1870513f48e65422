package scheduling

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

func plain(*corev1.PodTemplateSpec) {}

func TestNodeResourcesFit(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	w.pod("a")
	w.pod("b").Spec.RestartPolicy = corev1.RestartPolicyAlways
	expect(t, w.judge(jobOf(plain), 6), FitsNow, 6, "")
	expect(t, w.judge(jobOf(plain), 7), FitsLater, 6, "Insufficient cpu")
	// No more than 7 ever fit at once: then 7 are enough.
	w.pods = w.pods[1:]
	expect(t, w.judge(jobOf(plain), 9), FitsNow, 7, "Insufficient cpu")
	expect(t, w.judge(jobOf(func(p *corev1.PodTemplateSpec) { cpu(&p.Spec, "5") }), 1), Never, 0, "Insufficient cpu")
}

func TestNodeResourcesFitOfExtendedResources(t *testing.T) {
	w := &world{}
	w.node("a").Status.Allocatable["example.com/gpu"] = resource.MustParse("2")
	gpu := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	})
	expect(t, w.judge(gpu, 2), FitsNow, 2, "")
	w.pod("a").Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	expect(t, w.judge(gpu, 2), FitsLater, 1, "Insufficient example.com/gpu")
}

func TestPodsOfANode(t *testing.T) {
	w := &world{}
	w.node("a").Status.Allocatable["pods"] = resource.MustParse("1")
	expect(t, w.judge(jobOf(plain), 1), FitsNow, 1, "")
	w.pod("a").Spec.RestartPolicy = corev1.RestartPolicyAlways
	expect(t, w.judge(jobOf(plain), 1), Never, 0, "Too many pods")
}

func TestNodeUnschedulable(t *testing.T) {
	w := &world{}
	w.node("a").Spec.Unschedulable = true
	expect(t, w.judge(jobOf(plain), 1), FitsLater, 0, "node(s) were unschedulable")
	expect(t, w.judge(tolerating(corev1.TaintNodeUnschedulable), 1), FitsNow, 1, "")
}

func tolerating(key string) *Job {
	return jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	})
}

func TestTaintToleration(t *testing.T) {
	w := &world{}
	node := w.node("a")
	for _, row := range []struct {
		key     string
		effect  corev1.TaintEffect
		verdict Verdict
		reason  string
	}{
		{"dedicated", corev1.TaintEffectNoSchedule, Never, obstacles[capacity.Tainted].Message},
		{"dedicated", corev1.TaintEffectNoExecute, Never, obstacles[capacity.Tainted].Message},
		{"dedicated", corev1.TaintEffectPreferNoSchedule, FitsNow, ""},
		// The node will be well again.
		{corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule, FitsLater, obstacles[capacity.Tainted].Message},
		// The API server makes Pods tolerate this.
		{corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute, FitsNow, ""},
	} {
		node.Spec.Taints = []corev1.Taint{{Key: row.key, Effect: row.effect}}
		fits := int64(0)
		if row.verdict == FitsNow {
			fits = 1
		}
		expect(t, w.judge(jobOf(plain), 1), row.verdict, fits, row.reason)
		expect(t, w.judge(tolerating(row.key), 1), FitsNow, 1, "")
	}
}

func TestNodeName(t *testing.T) {
	named := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.NodeName = "b" })
	w := &world{}
	w.node("a")
	expect(t, w.judge(named, 1), Never, 0, obstacles[capacity.OtherName].Message)
	// The scheduler, which reads these, isn't asked.
	b := w.node("b")
	b.Spec.Unschedulable = true
	b.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	expect(t, w.judge(named, 1), FitsNow, 1, "")
	b.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute
	expect(t, w.judge(named, 1), Never, 0, obstacles[capacity.OtherName].Message)
}

// Kubelets refuse Pods of another operating system, which the scheduler binds to them all the same.
func TestOperatingSystem(t *testing.T) {
	on := func(os corev1.OSName) *Job {
		return jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.OS = &corev1.PodOS{Name: os} })
	}
	w := &world{}
	w.node("a")
	expect(t, w.judge(on(corev1.Windows), 1), Never, 0, obstacles[capacity.OtherOS].Message)
	expect(t, w.judge(on(corev1.Linux), 1), FitsNow, 1, "")
	w.node("b", corev1.LabelOSStable+"=windows")
	expect(t, w.judge(on(corev1.Windows), 2), FitsNow, 2, "")
	expect(t, w.judge(on(corev1.Linux), 2), FitsNow, 2, "")
}

func TestNodeAffinity(t *testing.T) {
	w := &world{}
	w.node("a", "disk=hdd")
	selecting := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
	expect(t, w.judge(selecting, 1), Never, 0, obstacles[capacity.Unselected].Message)
	w.node("b", "disk=ssd")
	expect(t, w.judge(selecting, 4), FitsNow, 4, "")
	named := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
			}},
		}}
	})
	w.pod("a")
	expect(t, w.judge(named, 4), FitsLater, 3, "Insufficient cpu")
}

func TestNodePorts(t *testing.T) {
	ports := func(p ...corev1.ContainerPort) *Job {
		return jobOf(func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Ports = p })
	}
	w := &world{}
	w.node("a")
	w.node("b")
	job := ports(corev1.ContainerPort{HostPort: 80})
	expect(t, w.judge(job, 2), FitsNow, 2, "")
	expect(t, w.judge(job, 3), FitsNow, 2, noPorts.Message) // more never fit
	w.pod("a").Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, HostIP: "10.0.0.1", Protocol: corev1.ProtocolTCP}}
	expect(t, w.judge(job, 2), FitsLater, 1, noPorts.Message)
	for _, free := range []corev1.ContainerPort{
		{HostPort: 81}, {HostPort: 80, Protocol: corev1.ProtocolUDP}, {HostPort: 80, HostIP: "10.0.0.2"}, {ContainerPort: 80},
	} {
		expect(t, w.judge(ports(free), 2), FitsNow, 2, "")
	}
}

func TestPodTopologySpread(t *testing.T) {
	spread := func(change func(*corev1.TopologySpreadConstraint)) *Job {
		return jobOf(func(p *corev1.PodTemplateSpec) {
			p.Labels["app"] = "a"
			c := corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			}
			change(&c)
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
		})
	}
	same := func(*corev1.TopologySpreadConstraint) {}
	w := &world{}
	w.node("a", "zone=1")
	w.node("b", "zone=2")
	w.node("c")
	expect(t, w.judge(spread(same), 8), FitsNow, 8, "")
	w.pod("a", "app=a")
	w.pod("a", "app=a")
	w.pod("b")
	// Zone 2 takes 3 more, as it has 4 CPUs, and zone 1 two.
	expect(t, w.judge(spread(same), 6), FitsLater, 5, "Insufficient cpu")
	w.pods = w.pods[:2]
	w.nodes[1].Spec.Unschedulable = true
	expect(t, w.judge(spread(same), 1), FitsLater, 0, spreadUnmet.Message)
	honor := spread(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor) })
	// cordoned nodes have no taint here
	expect(t, w.judge(honor, 1), FitsLater, 0, spreadUnmet.Message)
	w.nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	expect(t, w.judge(honor, 2), FitsNow, 2, "")
	three := spread(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = ptr.To(int32(3)) })
	w.pods, w.nodes[1].Spec = nil, corev1.NodeSpec{}
	expect(t, w.judge(three, 2), FitsNow, 2, "")
	expect(t, w.judge(three, 3), FitsNow, 2, spreadUnmet.Message) // more never fit
}

func TestInterPodAffinityOfTheJob(t *testing.T) {
	w := &world{}
	w.node("a", "zone=1")
	w.node("b", "zone=1")
	w.node("c", "zone=2")
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
	near := func(own string) *Job {
		return jobOf(func(p *corev1.PodTemplateSpec) {
			p.Labels["app"] = own
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
			}}
		})
	}
	expect(t, w.judge(near("b"), 1), Never, 0, affinityUnmet.Message)
	// The first Pod decides for all. It may decide for the small zone.
	expect(t, w.judge(near("a"), 4), FitsNow, 4, "")
	expect(t, w.judge(near("a"), 5), FitsNow, 4, affinityUnmet.Message)
	w.pod("a", "app=a")
	expect(t, w.judge(near("b"), 7), FitsNow, 7, "")
	expect(t, w.judge(near("a"), 5), FitsNow, 5, "")
	w.pod("b").Namespace = "other"
	w.pods = w.pods[1:]
	w.pods[0].Labels["app"] = "a"
	expect(t, w.judge(near("b"), 1), Never, 0, affinityUnmet.Message)
	term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	expect(t, w.judge(near("b"), 1), FitsNow, 1, "")
}

func TestInterPodAntiAffinity(t *testing.T) {
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
	anti := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
	}}
	apart := jobOf(func(p *corev1.PodTemplateSpec) { p.Labels["app"], p.Spec.Affinity = "a", anti })
	w := &world{}
	w.node("a", "zone=1")
	w.node("b", "zone=1")
	w.node("c", "zone=2")
	w.node("d")
	// A node without the label is in no zone, and holds as many as have room.
	expect(t, w.judge(apart, 6), FitsNow, 6, "")
	expect(t, w.judge(apart, 7), FitsNow, 6, antiAffinityUnmet.Message)
	w.pod("a").Spec.Affinity = anti
	expect(t, w.judge(apart, 6), FitsLater, 5, othersAntiAffinity.Message)
	w.pods[0].Spec.RestartPolicy = corev1.RestartPolicyAlways
	expect(t, w.judge(apart, 6), FitsNow, 5, othersAntiAffinity.Message)
}

func TestEachPluginHasItsNearness(t *testing.T) {
	var names []string
	for _, r := range obstacles {
		names = append(names, r.Plugin)
	}
	for _, p := range fitting {
		names = append(names, p.name)
	}
	for _, p := range coupledPlugins {
		names = append(names, p.name)
	}
	for _, name := range names {
		if !slices.Contains(byNearness, name) {
			t.Errorf("%s isn't in byNearness", name)
		}
	}
}

func TestNearest(t *testing.T) {
	w := &world{}
	w.node("a", "disk=hdd")
	ssd := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
	for _, row := range []struct {
		node    string
		change  func(*corev1.Node)
		message string
	}{
		{"b", func(n *corev1.Node) { n.Labels["disk"] = "hdd" }, obstacles[capacity.Unselected].Message},
		{"c", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }, obstacles[capacity.Tainted].Message},
		// Cordoned, too, but it doesn't match anyway.
		{"d", func(n *corev1.Node) { n.Labels["disk"], n.Spec.Unschedulable = "hdd", true }, obstacles[capacity.Tainted].Message},
		{"e", func(n *corev1.Node) { n.Spec.Unschedulable = true }, obstacles[capacity.Cordoned].Message},
		{"f", func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("0") }, "Insufficient cpu"},
	} {
		row.change(w.node(row.node, "disk=ssd"))
		answer := w.judge(ssd, 1)
		if nearest := answer.Nearest(); len(nearest) != 1 || nearest[0].Message != row.message {
			t.Errorf("with node %s: %v, want %q", row.node, nearest, row.message)
		}
	}
	if nearest := (&world{}).judge(ssd, 1); len(nearest.Nearest()) != 0 || nearest.Verdict != Never {
		t.Errorf("without nodes: %+v", nearest)
	}
}
