package pods_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet/nodecert"
)

// server is the kubelet's API in this process.
type server struct {
	t    *testing.T
	port int32
}

// serveKubelet starts the API, without the aggregated one.
func serveKubelet(f *ferrytest.Ferry, t *testing.T, edits ...func(*subresources.Options)) *server {
	t.Helper()
	listener := f.Listen()
	s := &server{t: t, port: portOf(listener.Addr().String())}
	certificate, err := nodecert.New("127.0.0.1", nil)
	s.check(err)
	options := subresources.Options{
		Node:    subresources.Endpoint{Listener: listener, Certificate: certificate.GetCertificate},
		Metrics: prometheus.NewRegistry(),
	}
	for _, edit := range edits {
		edit(&options)
	}
	f.RunSubresources("pods", options)
	return s
}

// program is the kubelet's API in a process that a test starts.
func program(f *ferrytest.Ferry, t *testing.T) *server {
	t.Helper()
	return &server{t: t, port: portOf(f.FreeAddress())}
}

func portOf(address string) int32 {
	return int32(netip.MustParseAddrPort(address).Port())
}

func (s *server) check(err error) {
	s.t.Helper()
	check(s.t, err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// address is where the server is.
func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(s.port))) }

// stand has the hub have the Node that stands for a worker, at this server.
func (s *server) stand(f *ferrytest.Ferry, worker string) {
	s.t.Helper()
	nodes := f.Hub.Client().CoreV1().Nodes()
	name := v1alpha1.NodePrefix + worker
	f.Kubectl(f.Hub, "", "delete", "node", name, "--ignore-not-found")
	s.t.Cleanup(func() { // the test's own context has ended
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
	})
	_, err := nodes.Create(f.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "virtual-kubelet", v1alpha1.LabelWorkerCluster: worker}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
			{Key: v1alpha1.LabelWorkerCluster, Value: worker, Effect: corev1.TaintEffectNoSchedule},
		}},
	}, metav1.CreateOptions{})
	s.check(err)
	status, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: s.port}},
		Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	s.check(err)
	_, err = nodes.PatchStatus(f.Context(), name, status) // controllers write the Node, too
	s.check(err)
}

// shadow has the hub have a Pod that stands for one of a worker.
func (s *server) shadow(f *ferrytest.Ferry, worker string, of *corev1.Pod, job *batchv1.Job, edits ...func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: of.Name, Labels: map[string]string{v1alpha1.LabelShadow: "true"},
			Annotations:     map[string]string{v1alpha1.AnnotationCluster: worker, v1alpha1.AnnotationPodUID: string(of.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{
			NodeName: v1alpha1.NodePrefix + worker, RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](0), AutomountServiceAccountToken: ptr.To(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	for key, value := range job.Spec.Selector.MatchLabels {
		pod.Labels[key] = value
	}
	pod.Labels[batchv1.JobNameLabel] = job.Name
	for _, c := range of.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image, Stdin: c.Stdin, TTY: c.TTY})
	}
	for _, edit := range edits {
		edit(pod)
	}
	pods := f.Hub.Client().CoreV1().Pods(job.Namespace)
	pod, err := pods.Create(f.Context(), pod, metav1.CreateOptions{})
	s.check(err)
	pod.Status = corev1.PodStatus{Phase: of.Status.Phase, StartTime: of.Status.StartTime, ContainerStatuses: of.Status.ContainerStatuses,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	pod, err = pods.UpdateStatus(f.Context(), pod, metav1.UpdateOptions{})
	s.check(err)
	return pod
}

// podsOf are the Pods of a Job in a worker.
func podsOf(f *ferrytest.Ferry, c *rig.Cluster, job string) (pods []*corev1.Pod) {
	for _, pod := range f.Pods(c) {
		if pod.Labels[batchv1.JobNameLabel] == job {
			pods = append(pods, &pod)
		}
	}
	return pods
}

// clientOf is a client certificate of a user of the hub.
func clientOf(f *ferrytest.Ferry, t *testing.T, user string, groups ...string) *tls.Certificate {
	t.Helper()
	config := f.UserConfig(user, groups...)
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate
}
