package pods_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestPods(t *testing.T) {
	f := ferrytest.For(t)
	edit, port := enabled(t)
	f.RunManager(edit)
	f.Register("w1", "w2")
	for name, test := range map[string]func(*testing.T, *world){
		"run": testRun, "end": testEnd, "Indexed": testIndexed, "deleted by a person": testDeleted, "Job deleted": testJobDeleted,
		"quota": testQuota, "label later": testLabelLater, "hostile": testHostile, "restricted": testRestricted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, shown(t))
		})
	}
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		testNode(t, shown(t), port)
	})
	t.Run("no label", func(t *testing.T) {
		t.Parallel()
		f := ferrytest.For(t)
		f.Submit("job", rigtest.RunFor(time.Second), rigtest.Parallel(2))
		f.HubJobUntil("job", rigtest.Complete)
		if pods := f.Kubectl(f.Hub, "", "get", "pods", "-n", f.NS, "-o", "name"); pods != "" {
			t.Errorf("the hub shows %s", pods)
		}
	})
}

func testRun(t *testing.T, w *world) {
	w.Submit("job", rigtest.RunForever(), rigtest.Parallel(3), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Running(3))
	w.shownAs("w1", "job", running)
	for name, pod := range w.pods(w.Hub, "job") {
		switch {
		case pod.Status.PodIP != "" || pod.Status.HostIP != "":
			t.Errorf("%s has addresses: %+v", name, pod.Status)
		case pod.Spec.NodeName != "jobferry-w1" || pod.Annotations[v1alpha1.AnnotationCluster] != "w1":
			t.Errorf("%s is on %s", name, pod.Spec.NodeName)
		case len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers):
			t.Errorf("%s has %+v", name, pod.Status.ContainerStatuses)
		}
	}
	if got := w.Kubectl(w.Hub, "", "get", "pods", "-n", w.NS, "-l", "job-name=job", "-o", "name"); strings.Count(got, "\n") != 3 {
		t.Errorf("kubectl finds %q", got)
	}
	w.Kubectl(w.Hub, "", "wait", "pod", "-n", w.NS, "-l", "job-name=job", "--for=condition=Ready", "--timeout=30s")
}

func testNode(t *testing.T, w *world, port int32) {
	w.Submit("job", rigtest.RunForever(), ferrytest.OnWorker("w1"))
	w.PodUntil(w.Hub, "job", running)
	node := w.Kubectl(w.Hub, "", "get", "node", "jobferry-w1", "-o",
		"jsonpath={.spec.unschedulable} {.status.addresses[*].address} {.status.daemonEndpoints.kubeletEndpoint.Port} {.spec.taints[*].key}")
	if !strings.HasPrefix(node, fmt.Sprintf("true 127.0.0.1 %d ", port)) || !strings.Contains(node, v1alpha1.LabelWorkerCluster) {
		t.Errorf("the Node has %q", node)
	}
}

func testEnd(t *testing.T, w *world) {
	w.Submit("job", rigtest.RunFor(time.Second), rigtest.Parallel(2), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Complete)
	w.shownAs("w1", "job", succeeded)
	// What somebody removes doesn't come again.
	for name := range w.pods(w.Hub, "job") {
		w.Kubectl(w.Hub, "", "delete", "pod", name, "-n", w.NS)
		w.podGone(w.Hub, name)
		if pods := w.pods(w.Cluster("w1"), "job"); len(pods) != 2 {
			t.Errorf("the worker has %d Pods", len(pods))
		}
		break
	}
}

func testIndexed(_ *testing.T, w *world) {
	w.Submit("job", rigtest.RunForever(), rigtest.Indexed(3))
	w.PodUntil(w.Hub, "job", func(p *corev1.Pod) bool {
		return running(p) && p.Labels["batch.kubernetes.io/job-completion-index"] == "2" && p.Annotations["batch.kubernetes.io/job-completion-index"] == "2" &&
			p.Spec.Hostname == "job-2"
	})
}

func testDeleted(_ *testing.T, w *world) {
	w.Submit("job", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Running(2))
	before := w.shownAs("w1", "job", running)
	for name := range before {
		w.Kubectl(w.Hub, "", "delete", "pod", name, "-n", w.NS) // waits until it's gone
		w.podGone(w.Cluster("w1"), name)
		delete(before, name)
		break
	}
	w.PodUntil(w.Hub, "job", func(p *corev1.Pod) bool { return before[p.Name] == nil && running(p) })
	w.HubJobUntil("job", rigtest.Running(2))
	w.shownAs("w1", "job", running)
	// Force isn't passed on.
	before = w.pods(w.Cluster("w1"), "job")
	for name := range before {
		w.Kubectl(w.Hub, "", "delete", "pod", name, "-n", w.NS, "--force", "--grace-period=0")
		break
	}
	w.shownAs("w1", "job", running)
	w.same("w1", "job", before)
}

func testJobDeleted(_ *testing.T, w *world) {
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		w.Submit("job", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.OnWorker("w2"))
		w.HubJobUntil("job", rigtest.Running(2))
		before := w.shownAs("w2", "job", running)
		w.Delete("job", propagation)
		w.HubJobGone("job")
		for name := range before {
			w.podGone(w.Hub, name)
			w.podGone(w.Cluster("w2"), name)
		}
	}
}

func testQuota(t *testing.T, w *world) {
	w.Kubectl(w.Hub, "", "create", "quota", "none", "--hard=pods=0", "-n", w.NS)
	w.Submit("job", rigtest.RunFor(time.Second), rigtest.Parallel(3))
	w.HubJobUntil("job", rigtest.Complete)
	w.EventUntil("job", v1alpha1.EventPodNotShown, "exceeded quota")
	events := w.Kubectl(w.Hub, "", "get", "events", "-n", w.NS, "--field-selector", "reason="+v1alpha1.EventPodNotShown, "-o", "name")
	if n := strings.Count(events, "\n"); n != 1 {
		t.Errorf("it's told %d times", n)
	}
}

func testLabelLater(t *testing.T, w *world) {
	w.Kubectl(w.Hub, "", "label", "namespace", w.NS, v1alpha1.LabelPods+"-")
	w.Submit("job", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Running(2))
	if pods := w.pods(w.Hub, "job"); len(pods) != 0 {
		t.Errorf("the hub shows %d Pods", len(pods))
	}
	w.Kubectl(w.Hub, "", "label", "namespace", w.NS, v1alpha1.LabelPods+"="+v1alpha1.PodsEnabled)
	before := w.shownAs("w1", "job", running)
	w.Kubectl(w.Hub, "", "label", "namespace", w.NS, v1alpha1.LabelPods+"-")
	for name := range before {
		w.podGone(w.Hub, name)
	}
	w.same("w1", "job", before)
}

// What a worker says of its Pods is cleaned.
func testHostile(t *testing.T, w *world) {
	w.Submit("job", rigtest.RunForever(), ferrytest.OnWorker("w2"))
	pod := w.PodUntil(w.Cluster("w2"), "job", running)
	w.Kubectl(w.Cluster("w2"), "", "patch", "pod", pod.Name, "-n", w.NS, "--subresource=status", "--type=strategic", "-p",
		`{"status":{"message":"a\u001b[31mb\nc","reason":"No Reason!","podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],"hostIP":"10.9.9.9",`+
			`"conditions":[{"type":"example.com/own","status":"False","reason":"x y","message":"`+strings.Repeat("long ", 2000)+`"},{"type":"Ready","status":"False","reason":"Bad"}]}}`)
	shadow := w.podUntil(w.Hub, pod.Name, func(p *corev1.Pod) bool { return p.Status.Message != "" })
	if s := shadow.Status; s.Message != "a [31mb c" || s.Reason != "NoReason" || s.PodIP != "" || s.HostIP != "" {
		t.Errorf("the hub shows %+v", s)
	}
	for _, c := range shadow.Status.Conditions {
		if len(c.Message) > 1024 {
			t.Errorf("condition %s has %d bytes", c.Type, len(c.Message))
		}
	}
}

// What shows a Pod is nothing that the hub's admission minds, however the Pod is.
func testRestricted(_ *testing.T, w *world) {
	w.NamespaceIn("w1")
	w.Kubectl(w.Hub, "", "label", "namespace", w.NS, "pod-security.kubernetes.io/enforce=restricted")
	w.Submit("job", rigtest.RunForever(), ferrytest.OnWorker("w1"), func(j *batchv1.Job) {
		j.Spec.Template.Spec.HostNetwork = true
		j.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	})
	w.HubJobUntil("job", rigtest.Running(1))
	w.shownAs("w1", "job", running)
}
