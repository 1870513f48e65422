package scheduling

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// classes are PriorityClasses of a worker.
func classes(change ...func(map[string]*schedulingv1.PriorityClass)) *Admission {
	all := map[string]*schedulingv1.PriorityClass{"low": {Value: -5}, "normal": {Value: 0}, "high": {Value: 100}}
	for _, c := range change {
		c(all)
	}
	return &Admission{PriorityClasses: all}
}

func (w *world) judgePreempting(admission *Admission, j *Job, wanted int64) Answer {
	s := NewSnapshot(w.nodes, w.pods, nil)
	s.Admission, s.Preemption = admission, true
	return j.Judge(s, wanted)
}

// withPriority are the Pods of a Job of a class, each of which takes two CPUs.
func withPriority(class string, change ...func(*corev1.PodTemplateSpec)) *Job {
	return jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.PriorityClassName = class
		cpu(&p.Spec, "2")
		for _, c := range change {
			c(p)
		}
	})
}

// full is a node with four CPUs: one Pod of each priority takes two of them.
func full(priorities ...int32) *world {
	w := &world{}
	w.node("a")
	for _, priority := range priorities {
		pod := w.pod("a", "app=other")
		cpu(&pod.Spec, "2")
		pod.Spec.Priority = ptr.To(priority)
	}
	return w
}

func TestPreemption(t *testing.T) {
	never := func(all map[string]*schedulingv1.PriorityClass) {
		all["high"].PreemptionPolicy = ptr.To(corev1.PreemptNever)
	}
	byDefault := func(all map[string]*schedulingv1.PriorityClass) {
		all["high"].GlobalDefault = true
	}
	for name, row := range map[string]struct {
		world     *world
		admission *Admission
		class     string
		wanted    int64
		verdict   Verdict
		now       int64
		preempts  bool
	}{
		"room beside":                {full(0), classes(), "high", 1, FitsNow, 1, false},
		"room for one only":          {full(0), classes(), "high", 2, FitsNow, 2, true},
		"all lower":                  {full(0, 99), classes(), "high", 2, FitsNow, 2, true},
		"as high":                    {full(100, 100), classes(), "high", 1, FitsLater, 0, false},
		"one lower, two wanted":      {full(0, 100), classes(), "high", 2, FitsLater, 0, false},
		"one lower, one wanted":      {full(0, 100), classes(), "high", 1, FitsNow, 1, true},
		"negative":                   {full(0, 0), classes(), "low", 1, FitsLater, 0, false},
		"no class":                   {full(-5, -5), classes(), "", 1, FitsNow, 1, true},
		"no class, another default":  {full(50, 50), classes(byDefault), "", 1, FitsNow, 1, true},
		"a class that never does":    {full(0, 0), classes(never), "high", 1, FitsLater, 0, false},
		"classes that aren't known":  {full(0, 0), &Admission{}, "high", 1, FitsLater, 0, false},
		"admission that isn't known": {full(0, 0), nil, "high", 1, FitsLater, 0, false},
		"more than the node has":     {full(0, 0), classes(), "high", 3, FitsNow, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := row.world.judgePreempting(row.admission, withPriority(row.class), row.wanted)
			if a.Verdict != row.verdict || a.Now != row.now || a.Preempts != row.preempts {
				t.Errorf("%s with %d Pods now, preempting %t; want %s with %d, %t", a.Verdict, a.Now, a.Preempts, row.verdict, row.now, row.preempts)
			}
		})
	}
}

func TestOnlyTheAdminsChoiceLetsAJobPreempt(t *testing.T) {
	expect(t, full(0, 0).judgeAdmitted(classes(), withPriority("high"), 1), FitsLater, 0, "Insufficient cpu")
}

func TestServicesArePreemptedToo(t *testing.T) {
	w := full(0, 0)
	for _, pod := range w.pods {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	expect(t, w.judgeAdmitted(classes(), withPriority("high"), 1), Never, 0, "Insufficient cpu")
	expect(t, w.judgePreempting(classes(), withPriority("high"), 1), FitsNow, 1, "")
}

// The scheduler preempts nothing on other nodes: whom a Pod keeps away it may keep away.
func TestAGuardMayStay(t *testing.T) {
	for _, priority := range []int32{0, 100} {
		w := full(priority)
		w.pods[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "mine"}},
			}},
		}}
		j := withPriority("high", func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{"job": "mine"} })
		if a := w.judgePreempting(classes(), j, 1); a.Verdict != FitsLater {
			t.Errorf("beside a guard of priority %d: %s", priority, a.Verdict)
		}
	}
}

func TestWhatAJobNeedsIsNotPreempted(t *testing.T) {
	near := func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			}},
		}}
	}
	if a := full(0, 0).judgePreempting(classes(), withPriority("high", near), 1); a.Verdict == FitsNow {
		t.Errorf("a Job near the Pods that it would preempt: %s", a.Verdict)
	}
}

func TestAGangPreemptsNothing(t *testing.T) {
	j := withPriority("high")
	j.gang = gangOf(&batchv1.Job{}) + 1
	if a := full(0, 0).judgePreempting(classes(), j, 2); a.Verdict == FitsNow || a.Preempts {
		t.Errorf("a gang: %s, preempting %t", a.Verdict, a.Preempts)
	}
}

func TestASnapshotIsNotChangedByPreemption(t *testing.T) {
	w := full(0, 0)
	s := NewSnapshot(w.nodes, w.pods, nil)
	s.Admission, s.Preemption = classes(), true
	before := s.Nodes[0].Free
	withPriority("high").Judge(s, 2)
	if !s.Nodes[0].Free.Equal(before) || len(s.Nodes[0].Pods) != 2 {
		t.Errorf("the node has %v and %d Pods", s.Nodes[0].Free, len(s.Nodes[0].Pods))
	}
}
