package kueue

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// All of these read the session's cache. What they return is shared, and must not be changed.

// workloadOf is the Workload of a Job; nil: none. Of several, it's the one that holds quota, else
// the youngest that hasn't finished.
func (s *session) workloadOf(ctx context.Context, job *batchv1.Job) *kueue.Workload {
	var all kueue.WorkloadList
	err := s.objects.List(ctx, &all, client.InNamespace(job.Namespace), client.MatchingFields{byOwner: string(job.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Can't read the cache of Workloads")
		return nil
	}
	var found *kueue.Workload
	for i := range all.Items {
		if w := &all.Items[i]; found == nil || outranks(w, found) {
			found = w
		}
	}
	return found
}

func outranks(a, b *kueue.Workload) bool {
	switch {
	case holdsQuota(a) != holdsQuota(b):
		return holdsQuota(a)
	case is(a, kueue.WorkloadFinished) != is(b, kueue.WorkloadFinished):
		return is(b, kueue.WorkloadFinished)
	default:
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
}

// gatesOf are our checks of a Workload, in its order.
func (s *session) gatesOf(ctx context.Context, w *kueue.Workload) []gate {
	var gates []gate
	for i := range w.Status.AdmissionChecks {
		if g, ours := s.gate(ctx, string(w.Status.AdmissionChecks[i].Name)); ours {
			gates = append(gates, g)
		}
	}
	return gates
}

// gate is a check by its name; false: it's not ours.
func (s *session) gate(ctx context.Context, name string) (gate, bool) {
	check := s.check(ctx, name)
	if check == nil || !isOurs(check) {
		return gate{}, false
	}
	return gateOf(check, s.config(ctx, configName(check))), true
}

func (s *session) check(ctx context.Context, name string) *kueue.AdmissionCheck {
	check := &kueue.AdmissionCheck{}
	if !s.get(ctx, name, check) {
		return nil
	}
	return check
}

func (s *session) config(ctx context.Context, name string) *kueue.MultiKueueConfig {
	config := &kueue.MultiKueueConfig{}
	if name == "" || !s.get(ctx, name, config) {
		return nil
	}
	return config
}

// flavorsOf are the flavors that a Workload was given.
func (s *session) flavorsOf(ctx context.Context, w *kueue.Workload) map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor {
	flavors := map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor{}
	if w.Status.Admission == nil {
		return flavors
	}
	for i := range w.Status.Admission.PodSetAssignments {
		for _, name := range flavorsOf(&w.Status.Admission.PodSetAssignments[i]) {
			flavor := &kueue.ResourceFlavor{}
			if s.get(ctx, string(name), flavor) {
				flavors[name] = flavor
			}
		}
	}
	return flavors
}

// get reads a cluster-scoped object.
func (s *session) get(ctx context.Context, name string, into client.Object) bool {
	err := s.objects.Get(ctx, types.NamespacedName{Name: name}, into, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).Error(err, "Can't read the cache", "name", name)
	}
	return err == nil
}

// isUsed says whether a check of ours names a worker.
func (s *session) isUsed(ctx context.Context, worker string) bool {
	var all kueue.AdmissionCheckList
	if err := s.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	for i := range all.Items {
		config := s.config(ctx, configName(&all.Items[i]))
		if config == nil {
			continue
		}
		for _, name := range config.Spec.Clusters {
			if name == worker {
				return true
			}
		}
	}
	return false
}
