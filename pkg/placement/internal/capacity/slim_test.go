package capacity

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// fat is a Pod with something in every field that a slim one could lose.
func fat(name string) *corev1.Pod {
	pod := NewJob("j").Requests("cpu", "1", "nvidia.com/gpu", "1").OnePerNode().NodeSelector("disk", "ssd").Tolerates("gpu").Pod(name)
	pod.Annotations = map[string]string{"note": strings.Repeat("x", 500)}
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("x", 500)}}
	pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{Kind: "Other", Name: "o"})
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Resources: corev1.ResourceRequirements{Requests: Quantities("cpu", "500m")},
	}}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
		Name: "more", Env: []corev1.EnvVar{{Name: "E", Value: strings.Repeat("x", 500)}},
		Ports: []corev1.ContainerPort{{ContainerPort: 80}, {HostPort: 80}},
	})
	pod.Spec.Overhead = Quantities("memory", "1Mi")
	pod.Spec.Volumes = []corev1.Volume{{Name: strings.Repeat("x", 500)}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady}, {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes"},
	}
	return pod
}

func slimPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	slim, err := SlimPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	again, err := SlimPod(slim.(*corev1.Pod).DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slim, again); diff != "" {
		t.Errorf("the second time makes a difference (-first +second):\n%s", diff)
	}
	return slim.(*corev1.Pod)
}

// TestSlimPodsCountTheSame feeds one Ledger with Pods as they are, another with slim ones.
func TestSlimPodsCountTheSame(t *testing.T) {
	resized := Bind(fat("p"), "a")
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", AllocatedResources: Quantities("cpu", "3"), Resources: &corev1.ResourceRequirements{Requests: Quantities("cpu", "2")},
	}}
	podLevel := Bind(fat("p"), "a")
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Requests: Quantities("cpu", "3")}
	lasting := Bind(fat("p"), "a")
	lasting.Spec.RestartPolicy = corev1.RestartPolicyAlways
	tests := map[string]*corev1.Pod{
		"waiting": fat("p"), "gated": gated(fat("p")), "bound": Bind(fat("p"), "a"), "resized": resized, "pod-level": podLevel,
		"leaving": leaving(Bind(fat("p"), "a")), "failed": In(Bind(fat("p"), "a"), corev1.PodFailed),
		"running": In(Bind(fat("p"), "a"), corev1.PodRunning), "started": started(fat("p")), "lasting": lasting,
	}
	for name, pod := range tests {
		t.Run(name, func(t *testing.T) {
			node := NewNode("a").Has("nvidia.com/gpu", "4").Label("disk", "ssd")
			whole, slim := newStory(t, node), newStory(t, node)
			whole.SetPod(pod)
			slim.SetPod(slimPod(t, pod))
			if diff := cmp.Diff(whole.Free(nobody).Nodes(), slim.Free(nobody).Nodes()); diff != "" {
				t.Errorf("nodes (-whole +slim):\n%s", diff)
			}
			id := idOf(NewJob("j"))
			if diff := cmp.Diff(whole.Unschedulable(id), slim.Unschedulable(id)); diff != "" {
				t.Errorf("report (-whole +slim):\n%s", diff)
			}
		})
	}
}

// TestSlimPodsKeepTheirShape while they wait for a node.
func TestSlimPodsKeepTheirShape(t *testing.T) {
	hostNetwork := fat("p")
	hostNetwork.Spec.Affinity, hostNetwork.Spec.HostNetwork = nil, true
	hostPort := fat("p")
	hostPort.Spec.Affinity = nil
	for name, pod := range map[string]*corev1.Pod{"anti-affinity": fat("p"), "host port": hostPort, "host network": hostNetwork} {
		if shapeOfPod(pod).key != shapeOfPod(slimPod(t, pod)).key {
			t.Errorf("%s: another shape", name)
		}
	}
}

func TestSlimPodsAreSlim(t *testing.T) {
	whole, slim := size(t, fat("p")), size(t, slimPod(t, Bind(fat("p"), "a")))
	if slim*4 > whole {
		t.Errorf("%d bytes of %d", slim, whole)
	}
}

func TestSlimNode(t *testing.T) {
	node := NewNode("a").Label("disk", "ssd").Taint("gpu", corev1.TaintEffectNoSchedule).Unschedulable().Obj()
	want := node.DeepCopy()
	node.Annotations = map[string]string{"note": strings.Repeat("x", 500)}
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	node.Status.Capacity = Quantities("cpu", "5")
	node.Status.Images = []corev1.ContainerImage{{Names: []string{strings.Repeat("x", 500)}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	slim, err := SlimNode(node)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, slim); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSlimLeavesTheRest: informers pass their tombstones through transforms, too.
func TestSlimLeavesTheRest(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "k"}
	for _, transform := range []cache.TransformFunc{SlimPod, SlimNode} {
		if got, err := transform(tombstone); got != tombstone || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func size(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}
