package clusters

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

func TestASecretBecomesAWorkerCluster(t *testing.T) {
	h := newHub(t)
	secret := h.register("w1", h.Cluster("w1").KubeconfigBytes(), "region=eu", "app.kubernetes.io/managed-by=Helm")
	h.placed.set("w1", 3)
	wc := h.until("w1", func(wc *v1alpha1.WorkerCluster) bool {
		return ready(v1alpha1.ReasonConnected)(wc) && schedulable(v1alpha1.ReasonSchedulable)(wc) && wc.Status.Nodes == 2
	})
	if wc.Labels["region"] != "eu" || len(wc.Labels) != 1 {
		t.Errorf("labels %v", wc.Labels)
	}
	if wc.Spec.KubeconfigSecret != "w1" || wc.Spec.RemovalPolicy != v1alpha1.RemovalWait || wc.Spec.Weight != 1 || !*wc.Spec.CreateNamespaces {
		t.Errorf("spec %+v", wc.Spec)
	}
	if cpu := wc.Status.Free[corev1.ResourceCPU]; cpu.String() != "16" || !strings.HasPrefix(wc.Status.KubernetesVersion, "v1.") {
		t.Errorf("status %+v", wc.Status)
	}
	h.untilEvent("WorkerCluster", "w1", v1alpha1.ReasonConnected)
	h.untilEvent("Secret", "w1", v1alpha1.ReasonConnected)
	row := h.Kubectl(h.cluster, "", "get", "wc", "w1", "--no-headers")
	if got := strings.Fields(row); len(got) != 7 || got[1] != "True" || got[4] != "16" || got[5] != "64Gi" {
		t.Errorf("kubectl get wc: %q", row)
	}

	h.check(h.client.Get(h.Context(), client.ObjectKeyFromObject(secret), secret))
	if len(secret.Finalizers) != 1 {
		t.Errorf("the Secret's finalizers: %v", secret.Finalizers)
	}
	h.edit("w1", func(s *v1alpha1.WorkerClusterSpec) { s.Cordoned = true })
	h.until("w1", schedulable(v1alpha1.ReasonCordoned))
}

func TestNumbersAreKept(t *testing.T) {
	h := newHub(t)
	worker := h.Cluster("w1")
	h.register("w1", worker.KubeconfigBytes())
	h.until("w1", func(wc *v1alpha1.WorkerCluster) bool { return wc.Status.Nodes == 2 })
	namespace := h.Namespace(worker)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "long", Labels: map[string]string{"rig.jobferry.dev/run-for": "forever"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *cpus(3)},
		}}}},
	}
	_, err := worker.Client().CoreV1().Pods(namespace).Create(h.Context(), pod, metav1.CreateOptions{})
	h.check(err)
	h.until("w1", func(wc *v1alpha1.WorkerCluster) bool { return wc.Status.Free.Cpu().Cmp(*cpus(13)) == 0 })
	h.placed.set("w1", 7)
	h.registry.PlacementsChanged("w1")
	h.until("w1", func(wc *v1alpha1.WorkerCluster) bool { return wc.Status.Jobs == 7 })
}

func TestTheAPIValidates(t *testing.T) {
	h := newHub(t)
	h.register("w1", h.Cluster("w1").KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonConnected))
	for patch, want := range map[string]string{
		`{"spec":{"kubeconfigSecret":"other"}}`:        "kubeconfigSecret is immutable",
		`{"spec":{"weight":0}}`:                        "greater than or equal to 1",
		`{"spec":{"jobController":"Mine"}}`:            "Unsupported value",
		`{"spec":{"carry":["ConfigMap","ConfigMap"]}}`: "Duplicate value",
	} {
		_, err := h.cluster.Kubectl(h.Context(), "", "patch", "wc", "w1", "--type=merge", "-p", patch)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", patch, err, want)
		}
	}
}

func TestBadRegistrations(t *testing.T) {
	h := newHub(t)
	h.register("good", h.Cluster("w2").KubeconfigBytes())
	h.until("good", ready(v1alpha1.ReasonConnected))
	hanging := h.Cluster("w1")
	hanging.Proxy().BlackHole()
	t.Cleanup(hanging.Proxy().Heal)

	insecure := strings.Replace(string(hanging.KubeconfigBytes()), "certificate-authority-data", "insecure-skip-tls-verify: true\n    unused", 1)
	for name, c := range map[string]struct {
		kubeconfig []byte
		reason     string
	}{
		"rubbish":   {[]byte("rubbish"), v1alpha1.ReasonKubeconfigInvalid},
		"empty":     {nil, v1alpha1.ReasonKubeconfigMissing},
		"insecure":  {[]byte(insecure), v1alpha1.ReasonKubeconfigRefused},
		"hub":       {h.cluster.KubeconfigBytes(), v1alpha1.ReasonIsHub},
		"duplicate": {h.Cluster("w2").KubeconfigBytes(), v1alpha1.ReasonDuplicate},
		"hangs":     {hanging.ProxyKubeconfigBytes(), v1alpha1.ReasonUnreachable},
	} {
		h.register(name, c.kubeconfig)
		wc := h.until(name, ready(c.reason))
		if text := message(wc, v1alpha1.ConditionReady); text == "" || c.reason != v1alpha1.ReasonUnreachable && !strings.Contains(text, "Secret "+h.namespace+"/"+name) {
			t.Errorf("%s: the message is %q", name, text)
		}
		h.untilEvent("Secret", name, c.reason)
	}
	if worker, ok := h.registry.Get("good"); !ok || worker.View().State != clusters.Ready {
		t.Error("the good worker suffers")
	}
	// A corrected one comes up; none of the others keeps its Secret.
	h.rotate("rubbish", hanging.KubeconfigBytes())
	h.until("rubbish", ready(v1alpha1.ReasonConnected))
	for _, name := range []string{"empty", "insecure", "hub", "duplicate", "hangs"} {
		h.unregister(name)
		h.untilGone(name)
	}
}

func TestASecretWithoutTheKey(t *testing.T) {
	h := newHub(t)
	secret := h.register("w1", nil)
	secret.Data = map[string][]byte{"config": []byte("x")}
	h.until("w1", ready(v1alpha1.ReasonKubeconfigMissing))
	h.check(h.client.Update(h.Context(), latest(h, secret, func(s *corev1.Secret) { s.Data = secret.Data })))
	h.until("w1", func(wc *v1alpha1.WorkerCluster) bool {
		return strings.Contains(message(wc, v1alpha1.ConditionReady), `no key "kubeconfig"`)
	})
}

func TestALabelTakenAway(t *testing.T) {
	h := newHub(t)
	secret := h.register("w1", h.Cluster("w1").KubeconfigBytes())
	h.until("w1", ready(v1alpha1.ReasonConnected))
	h.check(h.client.Update(h.Context(), latest(h, secret, func(s *corev1.Secret) { s.Labels = nil })))
	h.until("w1", ready(v1alpha1.ReasonSecretMissing))
	h.Until(rig.Object(h.cluster.Client().CoreV1().RESTClient(), "secrets", h.namespace, "w1"), func(o runtime.Object) bool {
		s, ok := o.(*corev1.Secret)
		return ok && len(s.Finalizers) == 0
	})
	h.check(h.client.Delete(h.Context(), &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}))
	h.unregister("w1")
	h.untilGone("w1")
}

// latest reads an object again and changes it; labels and finalizers that came meanwhile stay.
func latest(h *hub, secret *corev1.Secret, change func(*corev1.Secret)) *corev1.Secret {
	h.t.Helper()
	got := &corev1.Secret{}
	h.check(h.client.Get(h.Context(), client.ObjectKeyFromObject(secret), got))
	change(got)
	return got
}
