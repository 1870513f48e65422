package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// atOnce is how soon the hub tells what a worker says of a Pod: far sooner than the manager looks
// at a Job again without an event, also on a loaded machine.
const atOnce = 25 * time.Second

// What the scheduler and the kubelet of a worker say of a Pod that can't start is told on the hub
// at once, with the manager's defaults.
func TestReasonsAtOnce(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	for name, reason := range map[string]struct{ reason, message string }{
		"an image":         {"ErrImagePull", "failed to pull and unpack image: not found"},
		"a ConfigMap":      {"CreateContainerConfigError", `configmap "settings" not found`},
		"a container name": {"CreateContainerError", "the container name is in use"},
	} {
		t.Run("kubelet: "+name, func(t *testing.T) { t.Parallel(); kubeletSays(t, reason.reason, reason.message) })
	}
	t.Run("kubelet: a volume", func(t *testing.T) { t.Parallel(); kubeletCantMount(t) })
	t.Run("scheduler", func(t *testing.T) { t.Parallel(); schedulerSays(t) })
}

// bound submits a Job, and returns its Pod, which a node has got and doesn't start.
func bound(f *ferrytest.Ferry) *corev1.Pod {
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.PodLabel(rig.LabelStartAfter, "1h"))
	f.LeaveWorker("w1")
	pod := f.Until(rig.Objects(f.Cluster("w1").Client().CoreV1().RESTClient(), "pods", f.NS), func(o runtime.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && p.Spec.NodeName != ""
	}).(*corev1.Pod)
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Active == 1 })
	return pod
}

// say changes a Pod's status as its kubelet would, and returns when.
func say(f *ferrytest.Ferry, t *testing.T, pod *corev1.Pod, status string) time.Time {
	t.Helper()
	said := time.Now()
	_, err := f.Cluster("w1").Client().CoreV1().Pods(f.NS).Patch(f.Context(), pod.Name, types.StrategicMergePatchType,
		[]byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// kubeletCantMount has a kubelet say so as kubelets do: in an event alone.
func kubeletCantMount(t *testing.T) {
	f := ferrytest.For(t)
	pod := bound(f)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: f.NS, Name: "mount"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: f.NS, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: `MountVolume.SetUp failed: configmap "settings" not found`,
		LastTimestamp: metav1.Now(),
	}
	if _, err := f.Cluster("w1").Client().CoreV1().Events(f.NS).Create(f.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	said := say(f, t, pod, `{"conditions":[{"type":"PodReadyToStartContainers","status":"False"}]}`)
	isSoon(t, said, toldAt(f, "job", "Pods can't be started: "+event.Message))
}

// kubeletSays has a kubelet say why a container can't start, long after the mirror last changed.
func kubeletSays(t *testing.T, reason, message string) {
	f := ferrytest.For(t)
	pod := bound(f)
	said := say(f, t, pod, fmt.Sprintf(`{"containerStatuses":[{"name":%q,"image":"x","imageID":"","ready":false,"restartCount":0,"state":{"waiting":{"reason":%q,"message":%q}}}]}`,
		pod.Spec.Containers[0].Name, reason, message))
	isSoon(t, said, toldAt(f, "job", "1 Pods can't be started: container main: "+reason+": "+message))
}

// schedulerSays has the scheduler of a worker find no node, for a reason that the manager doesn't
// check.
func schedulerSays(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("job", ferrytest.OnWorker("w2"), inLabelled)
	f.LeaveWorker("w2")
	pod := f.Until(rig.Objects(f.Cluster("w2").Client().CoreV1().RESTClient(), "pods", f.NS), func(o runtime.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && scheduled(p) != nil && scheduled(p).Reason == corev1.PodReasonUnschedulable
	}).(*corev1.Pod)
	isSoon(t, scheduled(pod).LastTransitionTime.Time, toldAt(f, "job", "1 Pods can't be scheduled: "+scheduled(pod).Message))
}

// scheduled is what the scheduler says of a Pod.
func scheduled(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodScheduled {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// toldAt waits until the hub tells why Pods of a Job wait, and returns when it did.
func toldAt(f *ferrytest.Ferry, name, text string) time.Time {
	all := rig.Objects(f.Hub.Client().EventsV1().RESTClient(), "events", f.NS)
	return f.Until(all, func(o runtime.Object) bool {
		e, ok := o.(*eventsv1.Event)
		return ok && e.Regarding.Name == name && e.Reason == "PodsWaiting" && strings.Contains(e.Note, text)
	}).(*eventsv1.Event).EventTime.Time
}

func isSoon(t *testing.T, said, told time.Time) {
	t.Helper()
	t.Logf("told after %s", told.Sub(said))
	if told.Sub(said) > atOnce {
		t.Errorf("told after %s, want at most %s", told.Sub(said), atOnce)
	}
}
