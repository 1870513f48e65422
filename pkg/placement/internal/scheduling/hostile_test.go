package scheduling

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/util/costtest"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// many values, of which no label has one.
func many(values int) []string {
	all := make([]string, values)
	for i := range all {
		all[i] = fmt.Sprint("value-", i)
	}
	return all
}

func requireNodes(p *corev1.PodTemplateSpec, terms ...corev1.NodeSelectorTerm) {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

func nodeTerm(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

func podTerms(terms, values int) []corev1.PodAffinityTerm {
	all := make([]corev1.PodAffinityTerm, terms)
	for i := range all {
		all[i] = corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: many(values)}},
		}}
	}
	return all
}

// hostileJobs are as large as an API server stores, in one field each.
var hostileJobs = map[string]func(*corev1.PodTemplateSpec){
	capacity.NodeAffinityField: func(p *corev1.PodTemplateSpec) {
		terms := make([]corev1.NodeSelectorTerm, 80_000)
		for i := range terms {
			terms[i] = nodeTerm(corev1.LabelHostname, "x")
		}
		requireNodes(p, terms...)
	},
	capacity.SelectorField: func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeSelector = map[string]string{}
		for i := range 40_000 {
			p.Spec.NodeSelector[fmt.Sprint("key-", i)] = "x"
		}
	},
	capacity.AffinityField: func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerms(8, 25_000)}}
	},
	capacity.AntiAffinityField: func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerms(8, 25_000)}}
	},
	capacity.SpreadField: func(p *corev1.PodTemplateSpec) {
		for _, term := range podTerms(8, 25_000) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: term.LabelSelector,
			})
		}
	},
	capacity.TolerationsField: func(p *corev1.PodTemplateSpec) {
		p.Spec.Tolerations = make([]corev1.Toleration, 30_000)
		for i := range p.Spec.Tolerations {
			p.Spec.Tolerations[i] = corev1.Toleration{Key: fmt.Sprint("key-", i), Operator: corev1.TolerationOpExists}
		}
	},
	capacity.PortsField: func(p *corev1.PodTemplateSpec) {
		for i := range int32(30_000) {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: i + 1, ContainerPort: i + 1})
		}
	},
	capacity.VolumesField: func(p *corev1.PodTemplateSpec) {
		for i := range 10_000 {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", i)},
			}})
		}
	},
	capacity.ClaimsField: func(p *corev1.PodTemplateSpec) {
		p.Spec.ResourceClaims = make([]corev1.PodResourceClaim, 10_000)
	},
}

// hostileWorker has nodes that are all different, with Pods of which each is of a kind of its own,
// with large labels.
func hostileWorker(nodes, pods int) *Snapshot {
	w := &world{}
	for n := range nodes {
		node := w.node(fmt.Sprint("n", n))
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4k"), "pods": resource.MustParse("4k")}
		node.Spec.Taints = []corev1.Taint{{Key: "soft", Value: fmt.Sprint(n), Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	for i := range pods {
		pod := w.pod(fmt.Sprint("n", i%nodes), "app=other")
		for k := range 32 {
			pod.Labels[fmt.Sprintf("label-%d-of-pod-%d", k, i)] = strings.Repeat("x", 40)
		}
	}
	return NewSnapshot(w.nodes, w.pods, nil)
}

// workOn is the work of one judgement by all that a Job has, without a bound.
func workOn(s *Snapshot, j *Job) int {
	const unbounded = 1 << 50
	b := newBudget(unbounded, nil)
	judge(s, j, 1, b)
	return unbounded - b.left
}

// What a Job has too much of is left out for every worker, and the answer says so.
func TestHostileJobsAreCheap(t *testing.T) {
	s := hostileWorker(1000, 2000)
	for field, change := range hostileJobs {
		t.Run(field, func(t *testing.T) {
			j := jobOf(change)
			if work := workOn(s, j); work > mostWork/100 {
				t.Errorf("work %d", work)
			}
			a := j.Judge(s, 1)
			expect(t, a, FitsNow, 1, "")
			if fmt.Sprint(a.Unjudged) != fmt.Sprint([]string{field}) {
				t.Errorf("unjudged: %v", a.Unjudged)
			}
		})
	}
}

// Terms that are few enough to be judged are judged on all of very many nodes, or on none.
func TestManyTermsOnManyNodes(t *testing.T) {
	job := func(terms int) *Job {
		return jobOf(func(p *corev1.PodTemplateSpec) {
			all := make([]corev1.NodeSelectorTerm, terms)
			for i := range all {
				all[i] = nodeTerm(corev1.LabelHostname, "x")
			}
			requireNodes(p, all...)
		})
	}
	s := hostileWorker(4000, 0)
	few := job(10).Judge(s, 1)
	expect(t, few, Never, 0, "node(s) didn't match Pod's node affinity/selector")
	if len(few.Unjudged) > 0 {
		t.Errorf("unjudged: %v", few.Unjudged)
	}
	a := job(150).Judge(s, 1)
	expect(t, a, FitsNow, 1, "")
	if fmt.Sprint(a.Unjudged) != fmt.Sprint([]string{capacity.NodeAffinityField}) {
		t.Errorf("unjudged: %v", a.Unjudged)
	}
}

// A Job that is too much for each of many workers takes no more work in all of them than in one,
// and one that is too much for a hostile worker is judged by all that it has in the others.
func TestWorkersShareTheWork(t *testing.T) {
	terms := slices.Repeat([]corev1.NodeSelectorTerm{nodeTerm(corev1.LabelHostname, "x")}, 150)
	j := jobOf(func(p *corev1.PodTemplateSpec) { requireNodes(p, terms...) })
	looks := 0
	j.Expired = func() bool { looks++; return false }
	large, small := hostileWorker(3000, 0), hostileWorker(10, 0)
	expect(t, j.Judge(large, 1), FitsNow, 1, "")
	if a := j.Judge(small, 1); a.Verdict != Never || len(a.Unjudged) > 0 {
		t.Errorf("the next worker: %v, unjudged: %v", a.Verdict, a.Unjudged)
	}
	for range 50 {
		expect(t, j.Judge(large, 1), FitsNow, 1, "")
	}
	if looks > mostWork/lookEvery || j.Work() > 1 {
		t.Errorf("%d looks at the clock, work %v", looks, j.Work())
	}
}

// What is judged lightly is judged as ever, or takes too much work.
func TestJudgedLightly(t *testing.T) {
	s := hostileWorker(1000, 2000)
	light := func(change func(*corev1.PodTemplateSpec)) (*Job, Answer) {
		j := jobOf(change)
		j.Lightly()
		return j, j.Judge(s, 1)
	}
	for terms, tooMuch := range map[int]bool{1: false, 5: false, 150: true} {
		change := func(p *corev1.PodTemplateSpec) {
			requireNodes(p, slices.Repeat([]corev1.NodeSelectorTerm{nodeTerm(corev1.LabelHostname, "x")}, terms)...)
		}
		j, a := light(change)
		if j.TooMuch() != tooMuch {
			t.Errorf("%d terms: %v of the work", terms, j.Work())
		}
		if full := jobOf(change).Judge(s, 1); !tooMuch && !reflect.DeepEqual(a, full) {
			t.Errorf("%d terms: %+v, judged by all: %+v", terms, a, full)
		}
	}
	for nodes, tooMuch := range map[int]bool{1000: false, 5000: true} {
		s, j := fewWithOthers(nodes), pod("job", 3, "1", tried).job()
		alone := NewJob(j)
		alone.Lightly()
		if a := alone.Judge(s, 3); alone.TooMuch() != tooMuch || !tooMuch && (a.Verdict != FitsNow || a.Now != 1) {
			t.Errorf("%d nodes: %v of the work, %+v", nodes, alone.Work(), a)
		}
	}
}

// tried has Pods that are tried in each order, and from each zone: most of these have one node.
func tried(p *corev1.PodTemplateSpec) {
	near(p.Labels["role"], "zone")(p)
	for range maxTerms {
		away := &affinityOf(p).PodAntiAffinity
		if *away == nil {
			*away = &corev1.PodAntiAffinity{}
		}
		terms := &(*away).RequiredDuringSchedulingIgnoredDuringExecution
		*terms = append(*terms, roleTerm(p.Labels["role"], corev1.LabelHostname))
		spread(p.Labels["role"], corev1.LabelHostname)(p)
	}
}

func fewWithOthers(nodes int) *Snapshot {
	w := &world{}
	for i := range nodes {
		w.node(fmt.Sprint("n", i), fmt.Sprint("zone=", min(i, 9)))
	}
	return NewSnapshot(w.nodes, nil, nil)
}

// What the trials of a group copy and divide is work.
func TestTrialsOfAGroupAreWork(t *testing.T) {
	s := fewWithOthers(5000)
	var mates []Mate
	for i := range MaxMates {
		mates = append(mates, Mate{pod(fmt.Sprint("mate", i), 3, "1", tried).job(), 3})
	}
	j := NewJob(pod("job", 3, "1", tried).job())
	j.Lightly()
	g := NewGroup(j, mates)
	if cost := costtest.Of(func() { g.Judge(s, 3) }); !j.TooMuch() || cost > 16<<20 {
		t.Errorf("%v of the work, %d KiB are copied", j.Work(), cost>>10)
	}
}

// Labels that all nodes have with different values are work, as long as nobody has read them.
func TestTopologiesAreWork(t *testing.T) {
	const nodes = 1000
	w := &world{}
	for i := range nodes {
		var labels []string
		for k := range maxTerms {
			labels = append(labels, fmt.Sprintf("key-%d=%d", k, i))
		}
		w.node(fmt.Sprint("n", i), labels...)
	}
	s := NewSnapshot(w.nodes, nil, nil)
	j := jobOf(func(p *corev1.PodTemplateSpec) {
		for k := range maxTerms {
			spread("job", fmt.Sprint("key-", k))(p)
		}
	})
	first, again := workOn(s, j), workOn(s, j)
	if first-again < maxTerms*nodes*newWork || again > first {
		t.Errorf("the work is %d, and %d for the next one", first, again)
	}
}

// A worker with 80 MB of labels costs little to an honest Job with affinity, which is judged by it.
func TestLargeLabelsOfAWorker(t *testing.T) {
	s := hostileWorker(400, 40_000)
	near := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db", "tier": "1"}},
		}}}}
	})
	a := near.Judge(s, 1)
	expect(t, a, Never, 0, affinityUnmet.Message)
	if work := workOn(s, near); len(a.Unjudged) > 0 || work > mostWork/2 {
		t.Errorf("work %d, unjudged: %v", work, a.Unjudged)
	}
}

// The clock is the last resort, and is looked at while one worker is judged.
func TestTheClockEndsAJudgement(t *testing.T) {
	looks := 0
	j := jobOf(func(p *corev1.PodTemplateSpec) {
		requireNodes(p, nodeTerm(corev1.LabelHostname, many(1000)...))
	})
	j.Expired = func() bool { looks++; return true }
	a := j.Judge(hostileWorker(1000, 0), 1)
	expect(t, a, FitsNow, 1, "")
	if looks != 1 || fmt.Sprint(a.Unjudged) != fmt.Sprint([]string{capacity.NodeAffinityField}) {
		t.Errorf("%d looks, unjudged: %v", looks, a.Unjudged)
	}
}

// A Job that is too much without its largest field, too, is judged by what it requests.
func TestWhatIsLeftIsTooMuch(t *testing.T) {
	s := hostileWorker(4000, 0)
	j := jobOf(func(p *corev1.PodTemplateSpec) {
		requireNodes(p, nodeTerm(corev1.LabelHostname, many(4500)...))
		p.Spec.NodeSelector = map[string]string{}
		for i := range 300 {
			p.Spec.NodeSelector[fmt.Sprint("key-", i)] = "x"
		}
	})
	a := j.Judge(s, 1)
	expect(t, a, FitsNow, 1, "")
	if len(a.Unjudged) != 2 {
		t.Errorf("unjudged: %v", a.Unjudged)
	}
	cpu(j.spec, "5k")
	expect(t, newJob(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: *j.spec}).Judge(s, 1), Never, 0, "Insufficient cpu")
}

// Anti-affinity of a worker's Pods that has too much keeps nobody away.
func TestLargeAntiAffinityOfAWorker(t *testing.T) {
	pods := NewPods(nil)
	pod := (&world{}).pod("a")
	pod.UID = "1"
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerms(1, 700)}}
	pods.Set(pod)
	if pods.HasUnjudged() {
		t.Error("700 values aren't judged")
	}
	pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = podTerms(8, 25_000)
	pods.Set(pod)
	if !pods.HasUnjudged() {
		t.Error("200,000 values are judged")
	}
	if pods.Remove("1"); pods.HasUnjudged() {
		t.Error("a Pod is unjudged that is gone")
	}
}

// A worker's Pod keeps others away by a selector with a text of megabytes, which is read under the
// lock of the worker's Pods: its length says enough.
func TestAntiAffinityOfALongText(t *testing.T) {
	for _, part := range []string{"/", "a"} {
		long := strings.Repeat(part, 2<<20)
		for name, r := range map[string]metav1.LabelSelectorRequirement{
			"key": {Key: long, Operator: metav1.LabelSelectorOpExists}, "value": {Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{long}},
		} {
			s := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}}
			if cost := costtest.Of(func() { selectorOf(s) }); cost > 64<<10 || selectorOf(s).Matches(labels.Set{"a": "b"}) {
				t.Errorf("%s of %q: %d KiB are made of it, or it selects something", name, part, cost>>10)
			}
		}
	}
}

func BenchmarkHostileJobs(b *testing.B) {
	s := hostileWorker(1000, 2000)
	for field, change := range hostileJobs {
		b.Run(field, func(b *testing.B) {
			j := jobOf(change)
			b.ReportAllocs()
			for b.Loop() {
				*j.left = mostWork
				j.Judge(s, 1)
			}
		})
	}
}

func BenchmarkLargeLabels(b *testing.B) {
	s := hostileWorker(400, 40_000)
	j := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db", "tier": "1"}},
		}}}}
	})
	b.ReportAllocs()
	for b.Loop() {
		*j.left = mostWork
		j.Judge(s, 1)
	}
}

// The host ports of Jobs that belong together are compared with each other.
func TestPortsOfAGroupAreWork(t *testing.T) {
	ports := func(p *corev1.PodTemplateSpec) {
		for i := range int32(1000) {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: i + 1, ContainerPort: i + 1})
		}
	}
	other := func(p *corev1.PodTemplateSpec) {
		ports(p)
		for i := range p.Spec.Containers[0].Ports {
			p.Spec.Containers[0].Ports[i].HostPort += 1000
		}
	}
	j := NewJob(pod("a", 1, "1", ports).job())
	NewGroup(j, []Mate{{pod("b", 1, "1", other).job(), 1}}).Judge(hostileWorker(10, 0), 1)
	if least := 1000 * 1000.0 / mostWork; j.Work() < least {
		t.Errorf("work %v, want %v at least", j.Work(), least)
	}
}
