package capacity

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// sidecars are very many, each with an extended resource of its own.
func sidecars(count int) *corev1.PodSpec {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}
	for i := range count {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{
			Name: fmt.Sprint("s", i), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceName(fmt.Sprintf("a/%05d", i)): resource.MustParse("1"),
			}},
		})
	}
	return spec
}

// Of a Job, or a Pod of a worker, with very many sidecars, few resources are added up: each step
// would compare all that there were before.
func TestManySidecars(t *testing.T) {
	for name, read := range map[string]func(*corev1.PodSpec) Resources{
		"Job": TemplateRequests,
		"Pod": func(spec *corev1.PodSpec) Resources {
			pod := &corev1.Pod{Spec: *spec}
			for i := range spec.InitContainers {
				c := &pod.Spec.InitContainers[i]
				c.Resources.Requests = c.Resources.Limits
				pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
					Name: c.Name, Resources: &corev1.ResourceRequirements{Requests: c.Resources.Limits}, AllocatedResources: c.Resources.Limits,
				})
			}
			return PodRequests(pod)
		},
	} {
		sum := read(sidecars(2000))
		if len(sum.Others) != MaxOthers || sum.Others["a/00000"] != 1 || sum.Others[corev1.ResourceName(fmt.Sprintf("a/%05d", MaxOthers-1))] != 1 || sum.MilliCPU != 2000 {
			t.Errorf("%s: %+v", name, sum)
		}
	}
	pod := &corev1.Pod{Spec: *sidecars(2000)}
	narrow, options := narrowed(pod, podOptions)
	if n := len(namesIn(lists(&narrow.Spec), isAny)); n != MaxOthers || options.UseStatusResources {
		t.Errorf("%d resources are added up, those that the containers have, too: %t", n, options.UseStatusResources)
	}
	if n := len(namesIn(lists(&pod.Spec), isAny)); n != MaxOthers+1 {
		t.Errorf("the Pod itself has %d resources now", n)
	}
	for i := range pod.Spec.InitContainers { // an API server takes that of any number, too
		for name := range pod.Spec.InitContainers[i].Resources.Limits {
			pod.Spec.InitContainers[i].Resources.Limits[name] = resource.MustParse("0")
		}
	}
	if narrow, _ := narrowed(pod, podOptions); len(namesIn(lists(&narrow.Spec), isAny)) > 0 {
		t.Error("amounts of zero are added up")
	}
	few := &corev1.Pod{Spec: *sidecars(2)}
	few.Status.InitContainerStatuses = []corev1.ContainerStatus{{AllocatedResources: corev1.ResourceList{}}}
	for i := range 100 {
		few.Status.InitContainerStatuses[0].AllocatedResources[corev1.ResourceName(fmt.Sprint("b/", i))] = resource.MustParse("1")
	}
	if _, options := narrowed(few, podOptions); options.UseStatusResources {
		t.Error("what a status says is added up, whatever it names")
	}
	few.Status.InitContainerStatuses = make([]corev1.ContainerStatus, maxResized+1)
	if _, options := narrowed(few, podOptions); options.UseStatusResources {
		t.Error("each container is compared with very many statuses")
	}
	if spec := sidecars(MaxOthers); Narrow(spec) != spec {
		t.Error("a spec with few resources isn't taken as it is")
	}
}

// Pods of a Job's name, each with another UID of the Job, come and go in a worker: few of the UIDs
// are remembered.
func TestManyJobsOfOneName(t *testing.T) {
	s := newStory(t)
	s.manyNodes(1)
	j := NewJob("j").Requests("cpu", "1m")
	s.Reserve(j.Key(), shape(j), 1)
	for i := range 500 {
		pod := In(Bind(j.Pod(fmt.Sprint("p", i)), "n00000"), corev1.PodRunning)
		pod.OwnerReferences[0].UID = types.UID(fmt.Sprint("job-", i))
		if i%2 == 0 {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Started: ptr.To(true)}}
		}
		s.SetPod(pod)
		s.DeletePod(pod.UID)
	}
	if n, in := len(s.groups), len(s.jobs[j.Key()].groups); n > maxEmpty || in > maxEmpty {
		t.Errorf("%d are remembered, %d of the Job", n, in)
	}
	if g := s.groups[objectnames.ID{Namespace: j.Obj().Namespace, UID: "job-498"}]; g == nil || !g.ran {
		t.Error("it's forgotten that the last Job ran")
	}
}

// What is kept of a node and of a Pod has a bound, whatever a worker says.
func TestSlimObjectsAreSmall(t *testing.T) {
	node := NewNode("n").Obj()
	for i := range 5000 {
		node.Labels[fmt.Sprintf("l%05d", i)] = ""
		node.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("a/%05d", i))] = resource.MustParse("1")
	}
	slim, err := SlimNode(node)
	if err != nil {
		t.Fatal(err)
	}
	if n := slim.(*corev1.Node); len(n.Labels) != maxLabels || len(n.Status.Allocatable) > maxListed+4 {
		t.Errorf("%d labels and %d resources", len(n.Labels), len(n.Status.Allocatable))
	}
	left := NewNode("n").Has("nvidia.com/gpu", "8").Obj()
	for i := range 5000 {
		left.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("a/%05d", i))] = resource.MustParse("0")
	}
	slim, err = SlimNode(left)
	if n := slim.(*corev1.Node).Status.Allocatable; err != nil || n.Name("nvidia.com/gpu", resource.DecimalSI).Value() != 8 || len(n) > maxListed+4 {
		t.Errorf("%d resources are held beside those of device plugins that are gone: %v", len(n), n)
	}
	pod := NewJob("j").Pod("p")
	pod.OwnerReferences[0].UID = types.UID(slices.Repeat([]byte("u"), maxUID+1))
	if slim, err := SlimPod(pod); err != nil || len(slim.(*corev1.Pod).OwnerReferences) > 0 {
		t.Errorf("an owner with a long UID is kept: %v", err)
	}
}

// With counts what a Shape requests, and leaves what it's given alone.
func TestShapeWith(t *testing.T) {
	s := shape(NewJob("j").Requests("cpu", "1", "x/a", "2"))
	r := Resources{MilliCPU: 1, Pods: 1, Others: map[corev1.ResourceName]int64{"x/a": 1, "x/b": 1}}
	given := Resources{MilliCPU: 1000, Others: map[corev1.ResourceName]int64{"x/a": 2, "x/b": 3}}
	if got := s.With(r, &given, 2); got.MilliCPU != 2001 || got.Others["x/a"] != 5 || len(got.Others) != 1 || r.Others["x/a"] != 1 {
		t.Errorf("%+v of %+v", got, r)
	}
}
