package carry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Uncarried returns what the Pods of a template name that isn't carried, and without which they
// start all the same: the Service first, then the objects of kinds that aren't among those carried.
// What keeps Pods from starting isn't among them: the worker says so itself.
func Uncarried(template *corev1.PodTemplateSpec, carried []Kind) []Ref {
	refs := slices.DeleteFunc(References(template), func(r Ref) bool { return slices.Contains(carried, r.Kind) || !r.Optional })
	if i := slices.IndexFunc(refs, func(r Ref) bool { return r.Kind == Service }); i > 0 {
		service := refs[i]
		refs = slices.Insert(slices.Delete(refs, i, i+1), 0, service)
	}
	return refs
}

// Lacking is the note about something that isn't carried, and that the worker lacks.
func (r Ref) Lacking() string {
	if r.Kind == Service {
		return r.String() + " isn't there, and the WorkerCluster's spec.carry lacks Service: " + withoutService
	}
	return r.String() + " isn't there, and the WorkerCluster's spec.carry lacks " + string(r.Kind) + ": the Job's Pods start without it"
}

// Hidden is the note about something that isn't carried, if it can't be seen whether the worker has
// it; empty: it's not worth one, as most workers have what their Jobs name.
func (r Ref) Hidden() string {
	if r.Kind != Service {
		return ""
	}
	return r.String() + " isn't copied, and the hub may not see whether it's there: " + withoutService
}

const withoutService = "without a headless Service of the name that they have as their subdomain, the Job's Pods don't find each other by name"
