package worker

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// ensurePodGroup makes the Workload and the PodGroup of a Job with spec.scheduling, of a suspended
// one, too, keeps the size of its gang, and makes new Pods members. It fails where it can't, and
// then no Pod is created: the Pods would be scheduled one by one. There are few such Jobs, so
// nothing is cached: it reads from the API server before Pods are created, and when the spec of the
// Job has changed.
func (s *jobSync) ensurePodGroup(ctx context.Context, pods []func() *corev1.Pod) error {
	if plan.IsDelegated(s.job) && len(pods) > 0 {
		s.events.Eventf(s.job, corev1.EventTypeWarning, "PodGroupNotCreated",
			"The Pods are scheduled one by one: this Job controller makes no PodGroup of the Workload that annotation %s refers to",
			plan.AnnotationGroupTemplate)
	}
	if !plan.IsGrouped(s.job) || len(pods) == 0 && s.known.grouped == s.job.Generation {
		return nil
	}
	wanted, err := plan.Workload(s.job)
	if err != nil {
		return s.notGrouped("FailedWorkloadCompilation", "Failed to compile Workload", err)
	}
	size := plan.MinCount(workloadPolicy(wanted))
	workload, err := ensure(ctx, s, wanted, &schedulingv1beta1.Workload{}, "Workload", size, workloadPolicy)
	if err != nil {
		return s.notGrouped("FailedWorkloadCreate", "Failed to create Workload", err)
	}
	group, err := plan.PodGroup(s.job, workload)
	if err != nil {
		return s.notGrouped("FailedPodGroupCreate", "Failed to create PodGroup", err)
	}
	if group, err = ensure(ctx, s, group, &schedulingv1beta1.PodGroup{}, "PodGroup", size, groupPolicy); err != nil {
		return s.notGrouped("FailedPodGroupCreate", "Failed to create PodGroup", err)
	}
	plan.Join(pods, group)
	s.known.grouped = s.job.Generation
	return nil
}

// ensure returns an object of the Job as it's stored, with the size that its gang should have. That
// is in a policy; nil: the object is malformed, as plan.PodGroup says.
func ensure[T client.Object](
	ctx context.Context, s *jobSync, wanted, stored T, kind string, size *int32, policyOf func(T) *schedulingv1beta1.PodGroupSchedulingPolicy,
) (T, error) {
	found, err := s.existing(pages.Within(ctx, maxAnswer), wanted, stored)
	if pages.IsTooLarge(err) { // a user has added to it
		s.largeReads.Lock()
		defer s.largeReads.Unlock()
		found, err = s.existing(ctx, wanted, stored)
	}
	switch {
	case err != nil:
		return stored, err
	case !found:
		return wanted, s.create(ctx, wanted, kind)
	}
	before := stored.DeepCopyObject().(client.Object)
	if policy := policyOf(stored); policy == nil || !resize(policy, size) {
		return stored, nil
	}
	return stored, s.client.Patch(ctx, stored, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func workloadPolicy(w *schedulingv1beta1.Workload) *schedulingv1beta1.PodGroupSchedulingPolicy {
	if len(w.Spec.PodGroupTemplates) != 1 {
		return nil
	}
	return &w.Spec.PodGroupTemplates[0].SchedulingPolicy
}

func groupPolicy(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroupSchedulingPolicy {
	return &g.Spec.SchedulingPolicy
}

// resize sets the size of a gang, and reports whether that changes it.
func resize(p *schedulingv1beta1.PodGroupSchedulingPolicy, size *int32) bool {
	has := plan.MinCount(p)
	if has == nil || size == nil || *has == *size {
		return false
	}
	*has = *size
	return true
}

// existing reads the object of that name from the API server. One that isn't the Job's is an error.
func (s *jobSync) existing(ctx context.Context, wanted, into client.Object) (bool, error) {
	err := s.live.Get(ctx, client.ObjectKeyFromObject(wanted), into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	case !metav1.IsControlledBy(into, s.job):
		return false, fmt.Errorf("%s exists, and isn't of this Job: delete it", into.GetName())
	}
	return true, nil
}

func (s *jobSync) create(ctx context.Context, obj client.Object, kind string) error {
	if err := s.client.Create(ctx, obj); err != nil {
		return notCreated{err}
	}
	s.events.Eventf(s.job, corev1.EventTypeNormal, kind+"Created", "Created %s %s for Job %s", kind, obj.GetName(), s.job.Name)
	return nil
}

// notGrouped reports why the Job starts no Pods. A patch that meets a conflict is sent again soon,
// all else after a back-off.
func (s *jobSync) notGrouped(reason, what string, err error) error {
	patch := !errors.As(err, &notCreated{}) && apierrors.IsConflict(err)
	if patch || ignoreNamespaceTerminating(err) == nil {
		return err
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		err = errors.New("the API server doesn't serve " + schedulingv1beta1.SchemeGroupVersion.String() +
			": switch on its feature gate GenericWorkload, and the version by --runtime-config")
	}
	s.events.Eventf(s.job, corev1.EventTypeWarning, reason, "%s for Job %s, so it starts no Pods: %v", what, s.job.Name, short{err})
	return notCreated{fmt.Errorf("%s of spec.scheduling: %w", what, err)}
}
