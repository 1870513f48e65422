package scheduling

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
