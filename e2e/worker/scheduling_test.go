package worker_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// firstWithGangs is the first release with spec.scheduling.
const firstWithGangs binaries.Release = "1.37"

var gangRelease = binaries.Worker(firstWithGangs)

// gangCluster has spec.scheduling, both Job controllers, and room for two Pods.
func gangCluster() rig.Options {
	const gates = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true"
	return rig.Options{
		Name: "gang", Release: gangRelease, Nodes: []rig.Nodes{{Count: 2, CPU: "1"}},
		APIServerFlags:         []string{gates, "--runtime-config=scheduling.k8s.io/v1beta1=true"},
		ControllerManagerFlags: []string{gates},
		Controllers:            []string{"podgroup-protection-controller"},
		SchedulerFlags:         []string{gates},
	}
}

// gang asks for all Pods at once, each with a node of its own.
func gang(j *batchv1.Job) {
	j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{
		SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{
			Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{},
		},
	}
	j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

// A gang that doesn't fit starts no Pod. When it's made smaller, it runs. The embedded Job
// controller makes the Workload and the PodGroup that the built-in makes.
func TestGang(t *testing.T) {
	t.Parallel()
	if gangRelease < firstWithGangs {
		t.Skipf("Kubernetes %s has no spec.scheduling", gangRelease)
	}
	s := open(t, "gang")
	program, err := product.Program("jobferry-worker")
	s.ok(err)
	controller, err := workertest.Start(program, s.cluster.Kubeconfig(), filepath.Join(t.TempDir(), "log"), "--sync-batch-period="+batch)
	s.ok(err)
	t.Cleanup(controller.Kill)

	var made []grouping
	for _, managedBy := range []string{batchv1.JobControllerName, "jobferry.dev/worker"} {
		job := s.Create(s.cluster, rigtest.Job(s.ns, "job", indexed(3, 3), gang, rigtest.ManagedBy(managedBy)))
		s.until(active(3))
		made = append(made, s.grouping(job))
		if n := len(s.pods(func(p corev1.Pod) bool { return p.Spec.NodeName != "" })); n > 0 {
			t.Errorf("%s: %d Pods of a gang that doesn't fit have a node", managedBy, n)
		}
		s.patch(`{"parallelism":2,"completions":2}`)
		s.until(rigtest.Complete)
		foreground := metav1.DeletePropagationForeground
		s.ok(s.Client.BatchV1().Jobs(s.ns).Delete(s.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &foreground}))
		s.JobGone(s.cluster, s.ns, "job")
	}
	if diff := cmp.Diff(made[0], made[1]); diff != "" {
		t.Errorf("what the embedded controller makes isn't what the built-in does:\n%s", diff)
	}
}

// grouping is what a Job controller makes of spec.scheduling.
type grouping struct {
	Workload schedulingv1beta1.WorkloadSpec
	Group    schedulingv1beta1.PodGroupSpec
	Owners   []string // of the Workload, of the PodGroup, of a Pod
}

// grouping waits until the scheduler has seen that the gang doesn't fit.
func (s *scene) grouping(job *batchv1.Job) grouping {
	s.t.Helper()
	api := s.Client.SchedulingV1beta1()
	g := s.Until(rig.Objects(api.RESTClient(), "podgroups", s.ns), func(o runtime.Object) bool {
		group, ok := o.(*schedulingv1beta1.PodGroup)
		return ok && metav1.IsControlledBy(group, job) && meta.IsStatusConditionFalse(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	}).(*schedulingv1beta1.PodGroup)
	w, err := api.Workloads(s.ns).Get(s.Context(), g.Spec.WorkloadRef.WorkloadName, metav1.GetOptions{})
	s.ok(err)
	workload, err := plan.Workload(job)
	s.ok(err)
	group, err := plan.PodGroup(job, w)
	s.ok(err)
	if w.Name != workload.Name || g.Name != group.Name {
		s.t.Errorf("made %s and %s, want %s and %s", w.Name, g.Name, workload.Name, group.Name)
	}
	pod := s.pods(func(corev1.Pod) bool { return true })[0]
	g.Spec.WorkloadRef.WorkloadName = "" // it depends on the Job's UID
	return grouping{Workload: w.Spec, Group: g.Spec, Owners: slices.Concat(kinds(w), kinds(g), kinds(&pod))}
}

func kinds(o metav1.Object) (list []string) {
	for _, ref := range o.GetOwnerReferences() {
		list = append(list, fmt.Sprintf("%s %v", ref.Kind, ref.Controller != nil && *ref.Controller))
	}
	return list
}
