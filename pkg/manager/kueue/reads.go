package kueue

import (
	"context"
	"errors"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/group"
)

// All of these read the session's cache. What they return is shared, and must not be changed.

// workloadOf is the Workload of a Job, or of its JobSet; nil: none.
func workloadOf(
	ctx context.Context, job *batchv1.Job, ofOwner func(ctx context.Context, namespace string, uid types.UID) *kueue.Workload,
) *kueue.Workload {
	if w := ofOwner(ctx, job.Namespace, job.UID); w != nil {
		return w
	}
	if ref := metav1.GetControllerOfNoCopy(job); ref != nil && group.OfOwner(job.Namespace, ref).JobSet {
		return ofOwner(ctx, job.Namespace, ref.UID)
	}
	return nil
}

// jobsOf are the Jobs that a Workload stands for.
func (s *session) jobsOf(w *kueue.Workload) ([]types.NamespacedName, error) {
	owner, is := ownerOf(w)
	switch {
	case !is:
		return nil, errNotDispatched
	case !owner.group.JobSet:
		return []types.NamespacedName{{Namespace: w.Namespace, Name: owner.Name}}, nil
	}
	jobs, isGroup := s.jobs.GroupJobs(owner.group)
	if !isGroup {
		return nil, errNotDispatched
	}
	return jobs, nil
}

// errNotDispatched: a Workload stands for no Jobs that are dispatched.
var errNotDispatched = errors.New("neither a Job nor a JobSet")

// maxOfOwner bounds the Workloads of one owner that are looked at. Kueue makes one or two.
const maxOfOwner = 100

// workloadOfOwner is the Workload of an object; nil: none. Of several, it's the one that holds
// quota, else the youngest that hasn't finished.
func (s *session) workloadOfOwner(ctx context.Context, namespace string, uid types.UID) *kueue.Workload {
	var list kueue.WorkloadList
	err := s.objects.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byOwner: string(uid)},
		client.Limit(maxOfOwner), client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Can't read the cache of Workloads")
		return nil
	}
	var found *kueue.Workload
	for i := range list.Items {
		if w := &list.Items[i]; found == nil || outranks(w, found) {
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

// checksOf are Jobferry's checks of a Workload, in its order.
func (s *session) checksOf(ctx context.Context, w *kueue.Workload) []check {
	var checks []check
	for i := range w.Status.AdmissionChecks {
		if c, ours := s.check(ctx, string(w.Status.AdmissionChecks[i].Name)); ours {
			checks = append(checks, c)
		}
	}
	return checks
}

// check is the check of a name; false: it isn't Jobferry's.
func (s *session) check(ctx context.Context, name string) (check, bool) {
	ac := &kueue.AdmissionCheck{}
	if !s.get(ctx, name, ac) || !isOurs(ac) {
		return check{}, false
	}
	return checkOf(ac, s.config(ctx, configName(ac))), true
}

func (s *session) config(ctx context.Context, name string) *kueue.MultiKueueConfig {
	config := &kueue.MultiKueueConfig{}
	if name == "" || !s.get(ctx, name, config) {
		return nil
	}
	return config
}

// get reads a cluster-scoped object.
func (s *session) get(ctx context.Context, name string, into client.Object) bool {
	err := s.objects.Get(ctx, types.NamespacedName{Name: name}, into, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).Error(err, "Can't read the cache", "name", name)
	}
	return err == nil
}

// isUsed reports whether a check of Jobferry names a worker.
func (s *session) isUsed(ctx context.Context, worker string) bool {
	var list kueue.AdmissionCheckList
	if err := s.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return slices.ContainsFunc(list.Items, func(ac kueue.AdmissionCheck) bool {
		config := s.config(ctx, configName(&ac))
		return config != nil && slices.Contains(config.Spec.Clusters, worker)
	})
}
