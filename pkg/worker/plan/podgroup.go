package plan

import (
	"fmt"
	"hash/fnv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/schedulingv1/workloadbuilder"
	"k8s.io/utils/dump"
	"k8s.io/utils/ptr"
)

// AnnotationGroupTemplate names, on a Job of another controller, the PodGroupTemplate of that
// controller's Workload that the Job's Pods are to be scheduled by.
const AnnotationGroupTemplate = "scheduling.k8s.io/group-template-name"

// IsGrouped reports whether the Pods of the Job are scheduled as a PodGroup that its Job controller
// makes. A PodGroup that the Pod template names is the user's.
func IsGrouped(job *batchv1.Job) bool {
	return job.Spec.Scheduling != nil && job.Spec.Template.Spec.SchedulingGroup == nil && !IsDelegated(job)
}

// IsDelegated reports whether the controller of the Job has made a Workload for it, and leaves the
// PodGroup to the Job controller.
func IsDelegated(job *batchv1.Job) bool {
	_, named := job.Annotations[AnnotationGroupTemplate]
	return named && metav1.GetControllerOfNoCopy(job) != nil && job.Spec.Template.Spec.SchedulingGroup == nil
}

// Workload returns what spec.scheduling of a grouped Job asks for. Its name is the one that the
// built-in gives it, which depends on the Job's UID: a cluster may change its Job controller.
func Workload(job *batchv1.Job) (*schedulingv1beta1.Workload, error) {
	s := job.Spec.Scheduling
	item := &workloadbuilder.WorkloadItem{
		Name: job.Name + "-pgt-0",
		DefaultConfig: &workloadbuilder.SchedulingConfig{
			Policy:            &workloadbuilder.SchedulingPolicy{Basic: &workloadbuilder.BasicSchedulingPolicy{}},
			PriorityClassName: job.Spec.Template.Spec.PriorityClassName,
		},
		Input: workloadbuilder.WorkloadInput{
			Policy:         workloadbuilder.PolicyInput{PodGroupData: s.SchedulingPolicy},
			Constraints:    workloadbuilder.ConstraintsInput{PodGroupData: s.SchedulingConstraints},
			DisruptionMode: workloadbuilder.DisruptionModeInput{PodGroupData: s.DisruptionMode},
			ResourceClaims: workloadbuilder.ResourceClaimsInput{PodGroupData: s.ResourceClaims},
		},
		Callbacks: []workloadbuilder.SchedulingConfigFunc{wholeGang(job)},
	}
	if len(validation.IsDNS1123Label(item.Name)) > 0 {
		// the API server would refuse the Workload of a Job with a long name, or with dots in it
		item.Name = "pgt-0"
	}
	return workloadbuilder.NewBuilder(item, workloadbuilder.BuildOptions{
		Name: job.Name + "-" + hashOf(dump.ForHash(job.UID)), Namespace: job.Namespace, Owner: controllerRef(job),
	}).BuildWorkload()
}

// wholeGang: a gang without minCount has as many Pods as run at once.
func wholeGang(job *batchv1.Job) workloadbuilder.SchedulingConfigFunc {
	return func(c *workloadbuilder.SchedulingConfig) {
		if c.Policy.Gang != nil && c.Policy.Gang.MinCount == nil {
			c.Policy.Gang.MinCount = ptr.To(max(1, ptr.Deref(job.Spec.Parallelism, 1)))
		}
	}
}

// PodGroup returns the PodGroup of a Job that belongs to its Workload, as the API server has that.
// The garbage collector deletes it with either.
func PodGroup(job *batchv1.Job, stored *schedulingv1beta1.Workload) (*schedulingv1beta1.PodGroup, error) {
	if n := len(stored.Spec.PodGroupTemplates); n != 1 {
		return nil, fmt.Errorf("workload %s/%s has %d podGroupTemplates, a Job's has one: delete it, and it's made again",
			stored.Namespace, stored.Name, n)
	}
	template := stored.Spec.PodGroupTemplates[0].Name
	b := workloadbuilder.NewBuilderFromExistingWorkload(stored, workloadbuilder.BuildOptions{Owner: controllerRef(job)})
	g, err := b.NewPodGroup(fmt.Sprintf("%s-%s-%s", stored.Name, template, hashOf(stored.Name+template)), template)
	if err != nil {
		return nil, err
	}
	g.OwnerReferences = append(g.OwnerReferences, metav1.OwnerReference{
		APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Workload", Name: stored.Name, UID: stored.UID,
	})
	return g, nil
}

// MinCount is the size of the gang in a scheduling policy, which is all that may change of it; nil
// if the Pods are no gang.
func MinCount(p *schedulingv1beta1.PodGroupSchedulingPolicy) *int32 {
	if p.Gang == nil {
		return nil
	}
	return &p.Gang.MinCount
}

// Join makes Pods that are to be created members of the PodGroup. As the built-in's, they have the
// Job as their only owner.
func Join(pods []func() *corev1.Pod, g *schedulingv1beta1.PodGroup) {
	for i, make := range pods {
		pods[i] = func() *corev1.Pod {
			p := make()
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(g.Name)}
			return p
		}
	}
}

func controllerRef(job *batchv1.Job) *metav1.OwnerReference {
	return metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
}

func hashOf(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text))
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}
