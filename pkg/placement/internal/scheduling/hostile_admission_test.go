package scheduling

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// admissionCost is what it allocates, and takes as work, to admit a Job, if a Job may take so much.
func admissionCost(a *Admission, j *Job, most int) (allocated uint64, work int, field string) {
	s := NewSnapshot(nil, nil, nil)
	s.Admission = a
	b := newBudget(most, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, field = within(b, j, func(j *Job, b *budget) *Reason { return s.admit(j, b).refused })
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, most - b.left, field
}

// manyAmounts of resources that nobody has otherwise.
func manyAmounts(prefix string, amounts int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range amounts {
		list[corev1.ResourceName(fmt.Sprintf("example.com/%s-%d", prefix, i))] = resource.MustParse("1")
	}
	return list
}

func manyContainers(containers int) *Job {
	return jobOf(func(p *corev1.PodTemplateSpec) {
		for i := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c-", i), Resources: p.Spec.Containers[0].Resources})
		}
	})
}

// A worker's quotas look through the containers of a tenant's Job once, all together.
func TestManyQuotasOfManyContainers(t *testing.T) {
	const quotas = 2_000
	a := &Admission{}
	for range quotas {
		q := &corev1.ResourceQuota{}
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
		q.Status.Hard = list("requests.cpu", "1M", "cpu", "1M")
		a.Quotas = append(a.Quotas, q)
	}
	allocated, work, field := admissionCost(a, manyContainers(2_000), mostWork)
	if allocated > 16<<20 || work < quotas*limitWork || field != "" {
		t.Errorf("%d KiB are allocated, work %d, too much: %q", allocated>>10, work, field)
	}
	if _, work, field := admissionCost(a, manyContainers(1), quotas*limitWork); field == "" {
		t.Errorf("%d quotas are compared with work %d", quotas, work)
	}
}

// Scopes of a quota are counted, too.
func TestVeryManyScopes(t *testing.T) {
	q := &corev1.ResourceQuota{}
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpNotIn, Values: many(10_000)},
	}}
	if _, work, _ := admissionCost(&Admission{Quotas: []*corev1.ResourceQuota{q}}, jobOf(plain), mostWork); work < 10_000 {
		t.Errorf("10,000 values are compared with work %d", work)
	}
}

// What a worker's admission plugins have is counted before anything is made of it.
func TestVeryManyLimitsAreCountedFirst(t *testing.T) {
	const amounts = 200_000
	withClass := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.RuntimeClassName = ptr.To("kata") })
	for name, row := range map[string]struct {
		admission *Admission
		job       *Job
	}{
		"amounts": {limitsOf(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: manyAmounts("a", amounts)}), jobOf(plain)},
		"items":   {limitsOf(make([]corev1.LimitRangeItem, amounts)...), jobOf(plain)},
		"tolerations": {&Admission{RuntimeClasses: map[string]*nodev1.RuntimeClass{"kata": {
			Scheduling: &nodev1.Scheduling{Tolerations: make([]corev1.Toleration, 700_000)},
		}}}, withClass},
	} {
		if allocated, _, field := admissionCost(row.admission, row.job, mostWork/2); allocated > 64<<10 || field == "" {
			t.Errorf("%s: %d KiB are allocated, too much: %q", name, allocated>>10, field)
		}
	}
	long := corev1.ResourceName(strings.Repeat("x", 1<<20))
	a := limitsOf(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{long: one}})
	if _, work, _ := admissionCost(a, jobOf(plain), mostWork); work < len(long)/keyBytes {
		t.Errorf("1 MiB of a LimitRange takes work %d", work)
	}
}

// A worker's LimitRanges have megabytes together. Which they are is found out with little memory.
func TestLargeLimitRanges(t *testing.T) {
	a := &Admission{}
	for range 40 {
		item := corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: manyAmounts(strings.Repeat("x", 250), 1000)}
		a.LimitRanges = append(a.LimitRanges, limitsOf(item).LimitRanges...)
	}
	if allocated, work, field := admissionCost(a, jobOf(plain), mostWork/2); allocated > 4<<20 || work < 12<<20/keyBytes || field != "" {
		t.Errorf("%d MiB are allocated, work %d, too much: %q", allocated>>20, work, field)
	}
}

func limitsOf(items ...corev1.LimitRangeItem) *Admission {
	return &Admission{LimitRanges: []*corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: items}}}}
}

// Each default of a worker costs the same, whatever a tenant's container has; and the containers of
// a Job are summed once.
func TestManyLimitsOfManyResources(t *testing.T) {
	const items = 1_000
	j := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Requests = manyAmounts("own", 2_000) })
	var defaults, ofPods []corev1.LimitRangeItem
	for i := range items {
		defaults = append(defaults, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: manyAmounts(fmt.Sprint("d", i), 1)})
		ofPods = append(ofPods, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: manyAmounts("own", 1)})
	}
	for name, a := range map[string]*Admission{"defaults": limitsOf(defaults...), "of Pods": limitsOf(ofPods...)} {
		if allocated, _, field := admissionCost(a, j, math.MaxInt); allocated > 32<<20 || field != "" {
			t.Errorf("%s: %d MiB are allocated, too much: %q", name, allocated>>20, field)
		}
	}
}

// claimer has read very many requests of claims.
type claimer struct {
	Devices
	requests int
}

func (c claimer) Claimed(_ string, _ *corev1.PodSpec, spend func(int)) corev1.ResourceList {
	spend(c.requests)
	return nil
}

// What quotas count of claims is work.
func TestManyRequestsOfClaims(t *testing.T) {
	s := NewSnapshot(nil, nil, nil)
	s.Admission, s.Devices = &Admission{Quotas: []*corev1.ResourceQuota{{}}}, claimer{requests: mostWork / claimWork}
	_, field := within(newBudget(mostWork/2, nil), jobOf(plain), func(j *Job, b *budget) *Reason { return s.admit(j, b).refused })
	if field != capacity.ClaimsField {
		t.Errorf("too much: %q", field)
	}
}
