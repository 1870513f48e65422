package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// limits gives the Job's namespace quotas and LimitRanges, and Pods what scopes tell apart.
func (s source) limits(p *pair) {
	for _, pod := range p.Pods {
		if s.chance(20) {
			pod.Spec.ActiveDeadlineSeconds = ptr.To(int64(60))
		}
	}
	if s.chance(20) {
		p.Job.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To(int64(60))
	}
	if s.chance(75) {
		p.ResourceQuotas = append(p.ResourceQuotas, s.quota("q0"))
	}
	if s.chance(30) {
		p.ResourceQuotas = append(p.ResourceQuotas, s.quota("q1"))
	}
	for _, q := range p.ResourceQuotas {
		s.countClaims(p, q)
	}
	if s.chance(50) || len(p.ResourceQuotas) == 0 {
		p.LimitRanges = append(p.LimitRanges, s.limitRange())
	}
}

func (s source) quota(name string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	hard := q.Spec.Hard
	if s.chance(25) {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{s.scope()}
	}
	for len(hard) == 0 || s.chance(40) {
		if len(q.Spec.Scopes) > 0 && q.Spec.Scopes[0] == corev1.ResourceQuotaScopeBestEffort {
			hard["pods"] = resource.MustParse(s.of("0", "1", "3", "6"))
			break
		}
		switch s.IntN(6) {
		case 0:
			hard["pods"] = resource.MustParse(s.of("0", "1", "3", "6"))
		case 1:
			hard["count/pods"] = resource.MustParse(s.of("2", "5", "20"))
		case 2:
			hard[corev1.ResourceName(s.of("cpu", "requests.cpu"))] = resource.MustParse(s.of("500m", "2", "5"))
		case 3:
			hard[corev1.ResourceName(s.of("memory", "requests.memory"))] = resource.MustParse(s.of("1Gi", "3Gi", "10Gi"))
		case 4:
			hard[corev1.ResourceName(s.of("limits.cpu", "limits.memory"))] = resource.MustParse(s.of("2", "2Gi"))
		case 5:
			hard[corev1.DefaultResourceRequestsPrefix+gpu] = resource.MustParse(s.of("0", "2", "5"))
		}
	}
	if len(q.Spec.Scopes) > 0 {
		delete(hard, "count/pods") // not with a scope
		if len(hard) == 0 {
			hard["pods"] = resource.MustParse("2")
		}
	}
	return q
}

// claims reports whether claims are made for the Job's Pods.
func (p *pair) claims() bool {
	spec := &p.Job.Spec.Template.Spec
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) ||
		slices.ContainsFunc(spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.ResourceClaimTemplateName != nil })
}

// countClaims has a quota count the claims of volumes and devices, if there are any.
func (s source) countClaims(p *pair, q *corev1.ResourceQuota) {
	if len(q.Spec.Scopes) > 0 {
		return // with which they aren't allowed
	}
	if len(p.StorageClasses) > 0 && s.chance(80) {
		name := s.of("persistentvolumeclaims", "count/persistentvolumeclaims", "local.storageclass.storage.k8s.io/persistentvolumeclaims")
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(s.of("0", "4", "5", "6", "8"))
		name = s.of("requests.storage", "local.storageclass.storage.k8s.io/requests.storage", "dynamic.storageclass.storage.k8s.io/requests.storage")
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(s.of("1Gi", "8Gi", "15Gi", "30Gi"))
	}
	if len(p.DeviceClasses) > 0 && s.chance(80) {
		name := s.of("count/resourceclaims.resource.k8s.io", "any"+corev1.ResourceClaimsPerClass, "model"+corev1.ResourceClaimsPerClass,
			corev1.ResourceImplicitExtendedClaimsPerClass+"any", corev1.ResourceImplicitExtendedClaimsPerClass+"model")
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(s.of("0", "2", "4", "6"))
	}
}

func (s source) scope() corev1.ResourceQuotaScope {
	scopes := []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
	}
	return scopes[s.IntN(len(scopes))]
}

// limitRange has amounts that go up from the least to the most.
func (s source) limitRange() *corev1.LimitRange {
	r := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "limits"}}
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
	set := func(list *corev1.ResourceList, name corev1.ResourceName, amount string) {
		if !s.chance(40) {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = resource.MustParse(amount)
	}
	set(&item.Min, "cpu", s.of("50m", "200m"))
	set(&item.DefaultRequest, "cpu", "300m")
	set(&item.Default, "cpu", s.of("600m", "1"))
	set(&item.Max, "cpu", s.of("1", "2"))
	set(&item.DefaultRequest, "memory", "200Mi")
	set(&item.Default, "memory", s.of("600Mi", "1Gi"))
	if s.chance(15) {
		item.MaxLimitRequestRatio = corev1.ResourceList{"cpu": resource.MustParse(s.of("1", "4"))}
	}
	r.Spec.Limits = append(r.Spec.Limits, item)
	if s.chance(30) {
		pod := corev1.LimitRangeItem{Type: corev1.LimitTypePod}
		set(&pod.Min, "cpu", "200m")
		set(&pod.Max, "cpu", s.of("1", "2"))
		set(&pod.Max, "memory", "1Gi")
		r.Spec.Limits = append(r.Spec.Limits, pod)
	}
	return r
}
