package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

func (w *world) judgeAdmitted(admission *Admission, j *Job, wanted int64) Answer {
	s := NewSnapshot(w.nodes, w.pods, nil)
	s.Admission = admission
	return j.Judge(s, wanted)
}

func priorityClasses(name string) map[string]*schedulingv1.PriorityClass {
	return map[string]*schedulingv1.PriorityClass{name: {}}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestPriority(t *testing.T) {
	w := &world{}
	w.node("a")
	job := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.PriorityClassName = "high" })
	expect(t, w.judgeAdmitted(&Admission{}, job, 1), FitsNow, 1, "")
	expect(t, w.judgeAdmitted(&Admission{PriorityClasses: priorityClasses("high")}, job, 1), FitsNow, 1, "")
	expect(t, w.judgeAdmitted(&Admission{PriorityClasses: priorityClasses("low")}, job, 1), Never, 0, "no PriorityClass with name high was found")
}

func TestRuntimeClass(t *testing.T) {
	w := &world{}
	w.node("a").Spec.Taints = []corev1.Taint{{Key: "kata", Effect: corev1.TaintEffectNoSchedule}}
	job := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.RuntimeClassName = ptr.To("kata") })
	class := &nodev1.RuntimeClass{
		Overhead: &nodev1.Overhead{PodFixed: list("cpu", "1")},
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"kata": "yes"}, Tolerations: []corev1.Toleration{{Key: "kata", Operator: corev1.TolerationOpExists}},
		},
	}
	admission := &Admission{RuntimeClasses: map[string]*nodev1.RuntimeClass{}}
	expect(t, w.judgeAdmitted(admission, job, 1), Never, 0, `RuntimeClass "kata" not found`)
	admission.RuntimeClasses["kata"] = class
	expect(t, w.judgeAdmitted(admission, job, 1), Never, 0, obstacles[capacity.Unselected].Message)
	w.nodes[0].Labels["kata"] = "yes"
	w.pod("a")
	expect(t, w.judgeAdmitted(admission, job, 2), FitsLater, 1, "Insufficient cpu")
}

func TestLimitRanger(t *testing.T) {
	w := &world{}
	w.node("a")
	bare := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })
	of := func(item corev1.LimitRangeItem) *Admission {
		return &Admission{LimitRanges: []*corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}}
	}
	container := corev1.LimitTypeContainer
	for _, row := range []struct {
		name    string
		item    corev1.LimitRangeItem
		job     *Job
		verdict Verdict
		now     int64
		reason  string
	}{
		{"a default request counts", corev1.LimitRangeItem{Type: container, DefaultRequest: list("cpu", "2")}, bare, FitsNow, 2, "Insufficient cpu"},
		{"below the minimum", corev1.LimitRangeItem{Type: container, Min: list("cpu", "2")}, jobOf(plain), Never, 0, "minimum cpu usage per Container is 2, but request is 1"},
		{"above the maximum", corev1.LimitRangeItem{Type: container, Max: list("cpu", "2"), Default: list("cpu", "3")}, jobOf(plain), Never, 0, "maximum cpu usage per Container is 2, but limit is 3"},
		{"without a limit", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "2")}, jobOf(plain), Never, 0, "maximum cpu usage per Pod is 2.  No limit is specified"},
		{"a request above the default limit", corev1.LimitRangeItem{Type: container, Default: list("cpu", "500m")}, jobOf(plain), Never, 0, "main: request of 1 must be less than or equal to cpu limit of 500m"},
		{"in range", corev1.LimitRangeItem{Type: container, Min: list("cpu", "1"), MaxLimitRequestRatio: list("cpu", "3"), Default: list("cpu", "3")}, jobOf(plain), FitsNow, 4, "Insufficient cpu"},
	} {
		t.Run(row.name, func(t *testing.T) {
			expect(t, w.judgeAdmitted(of(row.item), row.job, 5), row.verdict, row.now, row.reason)
		})
	}
}

func TestResourceQuota(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
	admission := &Admission{Quotas: []*corev1.ResourceQuota{quota}}
	ask := func(hard, used corev1.ResourceList) Answer {
		quota.Status.Hard, quota.Status.Used = hard, used
		return w.judgeAdmitted(admission, jobOf(plain), 5)
	}
	expect(t, ask(list("pods", "5"), list("pods", "0")), FitsNow, 5, "")
	expect(t, ask(list("requests.cpu", "6"), list("requests.cpu", "2500m")), FitsLater, 3,
		"exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2500m, limited: requests.cpu=6")
	expect(t, ask(list("pods", "0"), list("pods", "0")), Never, 0, "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0")
	expect(t, ask(list("limits.cpu", "5"), nil), Never, 0, "failed quota: q: must specify limits.cpu for: main")
	expect(t, ask(list("configmaps", "0"), nil), FitsNow, 5, "")
	// What a service takes of the quota won't be given back: then 3 Pods are as many as ever.
	w.pod("a").Spec.RestartPolicy = corev1.RestartPolicyAlways
	w.pod("a").Spec.RestartPolicy = corev1.RestartPolicyAlways
	expect(t, ask(list("pods", "5"), list("pods", "2")), FitsNow, 3, "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=5")
	// Which of them a quota with scopes counts isn't known.
	quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
	expect(t, ask(list("pods", "2"), list("pods", "2")), FitsLater, 0, "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2")
}

// Quotas count the claims that are made for Pods, by their class, too.
func TestQuotasOfClaims(t *testing.T) {
	w := &world{}
	w.node("a")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
	admission := &Admission{Quotas: []*corev1.ResourceQuota{quota}}
	claim := func(class, size string) corev1.Volume {
		return corev1.Volume{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", size)},
			}},
		}}}
	}
	job := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{claim("gold", "2Gi"), claim("gold", "1Gi"), claim("silver", "1Gi"), {VolumeSource: data}}
	})
	for _, row := range []struct {
		name corev1.ResourceName
		hard string
		now  int64
		each string
	}{
		{"persistentvolumeclaims", "7", 2, "3"},
		{"count/persistentvolumeclaims", "5", 1, "3"},
		{"requests.storage", "11Gi", 2, "4Gi"},
		{"gold.storageclass.storage.k8s.io/requests.storage", "6Gi", 2, "3Gi"},
		{"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "3", 1, "2"},
		{"silver.storageclass.storage.k8s.io/persistentvolumeclaims", "2", 2, "1"},
	} {
		quota.Status.Hard, quota.Status.Used, quota.Spec.Scopes = list(string(row.name), row.hard), list(string(row.name), "0"), nil
		expect(t, w.judgeAdmitted(admission, job, 3), FitsNow, row.now,
			"exceeded quota: q, requested: "+string(row.name)+"="+row.each+", used: "+string(row.name)+"=0, limited: "+string(row.name)+"="+row.hard)
		quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
		expect(t, w.judgeAdmitted(admission, job, 3), FitsNow, 3, "")
	}
	quota.Status.Hard, quota.Spec.Scopes = list("requests.storage", "3Gi"), nil
	if a := w.judgeAdmitted(admission, job, 3); a.Verdict != Never || a.Reasons[0].Field != claimsField {
		t.Errorf("more than there is ever: %+v", a)
	}
}

// Each container must say what it takes of what a quota counts, unless the Pod says it for all.
func TestContainerThatSaysNothing(t *testing.T) {
	w := &world{}
	w.node("a")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
	quota.Status.Hard = list("requests.cpu", "5")
	admission := &Admission{Quotas: []*corev1.ResourceQuota{quota}}
	with := func(resources *corev1.ResourceRequirements) *Job {
		return jobOf(func(p *corev1.PodTemplateSpec) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
			p.Spec.Resources = resources
		})
	}
	expect(t, w.judgeAdmitted(admission, with(nil), 1), Never, 0, "failed quota: q: must specify requests.cpu for: init")
	expect(t, w.judgeAdmitted(admission, with(&corev1.ResourceRequirements{Requests: list("cpu", "1")}), 1), FitsNow, 1, "")
}

// The status of a quota counts the Job's own Pods, and not yet those of Jobs that were placed a
// moment ago.
func TestWhatAQuotaCounts(t *testing.T) {
	w := &world{}
	w.node("a")
	quota := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: list("requests.cpu", "4", "pods", "9"), Used: list("requests.cpu", "3", "pods", "3")}}
	admission := &Admission{Quotas: []*corev1.ResourceQuota{quota}}
	ask := func(want int64) {
		t.Helper()
		if got := w.judgeAdmitted(admission, jobOf(plain), 4).Now; got != want {
			t.Errorf("%d fit, want %d", got, want)
		}
	}
	ask(1)
	admission.Counted = 2
	ask(3)
	admission.Awaited = capacity.Resources{MilliCPU: 2000, Pods: 1}
	ask(1)
	admission.Awaited.Pods = 8
	ask(0)
	admission.Counted = 1000
	ask(1)
	quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
	ask(4)
}

func TestScopesOfQuotas(t *testing.T) {
	w := &world{}
	w.node("a")
	deadline := func(p *corev1.PodTemplateSpec) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(1)) }
	high := func(p *corev1.PodTemplateSpec) { p.Spec.PriorityClassName = "high" }
	none := func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }
	across := func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "zone", Namespaces: []string{"other"}},
		}}}
	}
	for _, row := range []struct {
		scope   corev1.ResourceQuotaScope
		in, out func(*corev1.PodTemplateSpec)
	}{
		{corev1.ResourceQuotaScopeTerminating, deadline, plain},
		{corev1.ResourceQuotaScopeNotTerminating, plain, deadline},
		{corev1.ResourceQuotaScopeBestEffort, none, plain},
		{corev1.ResourceQuotaScopeNotBestEffort, plain, none},
		{corev1.ResourceQuotaScopePriorityClass, high, plain},
		{corev1.ResourceQuotaScopeCrossNamespacePodAffinity, across, plain},
	} {
		t.Run(string(row.scope), func(t *testing.T) {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
			quota.Spec.Scopes = []corev1.ResourceQuotaScope{row.scope}
			quota.Status.Hard = list("pods", "0")
			admission := &Admission{Quotas: []*corev1.ResourceQuota{quota}}
			if a := w.judgeAdmitted(admission, jobOf(row.in), 1); a.Verdict != Never {
				t.Errorf("the quota doesn't count it: %v", a)
			}
			if a := w.judgeAdmitted(admission, jobOf(row.out), 1); a.Verdict != FitsNow {
				t.Errorf("the quota counts it: %v", a)
			}
		})
	}
}
