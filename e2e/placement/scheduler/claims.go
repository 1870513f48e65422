package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reserve tells claims the UIDs of the Pods that have them, which are new.
func reserve(claims []*resourcev1.ResourceClaim, pods []*corev1.Pod) {
	for _, c := range claims {
		c.UID, c.ResourceVersion = types.UID(c.Namespace+"/"+c.Name), "1"
		for i := range c.Status.ReservedFor {
			r := &c.Status.ReservedFor[i]
			for _, p := range pods {
				if p.Namespace == c.Namespace && p.Name == r.Name {
					r.UID = p.UID
				}
			}
		}
	}
}

// claimsOf makes the claims of a new Pod from templates, as kube-controller-manager does.
func claimsOf(pod *corev1.Pod, templates []*resourcev1.ResourceClaimTemplate) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, r := range pod.Spec.ResourceClaims {
		at := slices.IndexFunc(templates, func(t *resourcev1.ResourceClaimTemplate) bool {
			return r.ResourceClaimTemplateName != nil && t.Name == *r.ResourceClaimTemplateName && t.Namespace == pod.Namespace
		})
		if at < 0 {
			continue
		}
		claim := &resourcev1.ResourceClaim{Spec: *templates[at].Spec.Spec.DeepCopy()}
		claim.Namespace, claim.Name = pod.Namespace, pod.Name+"-"+r.Name
		claim.UID, claim.ResourceVersion = types.UID(claim.Namespace+"/"+claim.Name), "1"
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
		claims = append(claims, claim)
	}
	return claims
}

// tell a Pod which of its claims have been made.
func tell(pod *corev1.Pod, claims []*resourcev1.ResourceClaim) {
	pod.Status.ResourceClaimStatuses = nil
	for _, c := range claims {
		pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses,
			corev1.PodResourceClaimStatus{Name: strings.TrimPrefix(c.Name, pod.Name+"-"), ResourceClaimName: &c.Name})
	}
}

// deallocated are the claims as they are when of all Pods only some are left.
func deallocated(claims []*resourcev1.ResourceClaim, left []*corev1.Pod) []*resourcev1.ResourceClaim {
	free := make([]*resourcev1.ResourceClaim, len(claims))
	for i, c := range claims {
		c = c.DeepCopy()
		c.Status.ReservedFor = slices.DeleteFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return !slices.ContainsFunc(left, func(p *corev1.Pod) bool { return p.UID == r.UID })
		})
		if len(c.Status.ReservedFor) == 0 {
			c.Status.Allocation = nil
		}
		free[i] = c
	}
	return free
}
