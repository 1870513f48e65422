package pods_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

func listens(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Stdin = true }

// show has the hub show the Pods of a namespace, on Nodes at this server.
func (s *server) show(f *ferrytest.Ferry) {
	s.t.Helper()
	f.Kubectl(f.Hub, "", "label", "namespace", f.NS, v1alpha1.LabelPods+"="+v1alpha1.PodsEnabled)
}

func (s *server) manage(o *manager.Options) {
	o.Pods = manager.PodsOptions{Enabled: true, Address: "127.0.0.1", Port: s.port}
}

// run runs a Job in w1 until the hub shows its Pods.
func (s *server) run(f *ferrytest.Ferry, name string, pods int32, options ...rigtest.Option) []*corev1.Pod {
	s.t.Helper()
	_, of := s.runUnseen(f, name, pods, options...)
	for _, pod := range of {
		f.Until(rig.Object(f.Hub.Client().CoreV1().RESTClient(), "pods", f.NS, pod.Name), func(o runtime.Object) bool {
			shadow, _ := o.(*corev1.Pod)
			return shadow != nil && shadow.Status.Phase == corev1.PodRunning
		})
	}
	return of
}

// runUnseen runs a Job in w1, and returns its Pods there.
func (s *server) runUnseen(f *ferrytest.Ferry, name string, pods int32, options ...rigtest.Option) (*batchv1.Job, []*corev1.Pod) {
	s.t.Helper()
	f.Submit(name, append([]rigtest.Option{ferrytest.OnWorker("w1"), rigtest.Indexed(pods), rigtest.RunForever()}, options...)...)
	f.LeaveWorker("w1")
	job := f.HubJobUntil(name, rigtest.Running(pods))
	return job, podsOf(f, f.Cluster("w1"), name)
}

// runByHand is runUnseen, and the hub has Pods that this test has made.
func (s *server) runByHand(f *ferrytest.Ferry, name string) (*batchv1.Job, *corev1.Pod) {
	s.t.Helper()
	job, of := s.runUnseen(f, name, 1)
	s.shadow(f, "w1", of[0], job)
	return job, of[0]
}

// A log that is followed ends with its Pod.
func TestFollowedLogs(t *testing.T) {
	f := ferrytest.For(t)
	s := serveKubelet(f, t)
	f.RunManager(s.manage)
	f.Register("w1")
	s.show(f)
	pod := s.run(f, "job", 1, rigtest.RunFor(3*time.Second))[0].Name
	out := f.Kubectl(f.Hub, "", "logs", "-f", "-n", f.NS, "job/job")
	if !strings.Contains(out, "started, index 0\n") || !strings.HasSuffix(out, "ended with exit code 0\n") {
		t.Errorf("%q", out)
	}
	f.Until(rig.Object(f.Hub.Client().CoreV1().RESTClient(), "pods", f.NS, pod), func(o runtime.Object) bool {
		shadow, _ := o.(*corev1.Pod)
		return shadow != nil && shadow.Status.Phase == corev1.PodSucceeded
	})
	_, err := f.Hub.Kubectl(f.Context(), "", "exec", "-n", f.NS, pod, "--", "true")
	if err == nil || !strings.Contains(err.Error(), "completed pod") {
		t.Errorf("a command in a Pod that has ended: %v", err)
	}
}

// A tenant who writes Pods on the Node himself, or edits those that stand for his, reaches no Pod
// of another namespace, and none of his own that isn't of a Job.
func TestATenantWritesPodsOnTheNode(t *testing.T) {
	f, victim := ferrytest.For(t), ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	s := serveKubelet(f, t)
	s.stand(f, "w1")
	job, own := s.runByHand(f, "job")
	_, other := s.runByHand(victim, "job")
	plain, err := f.Cluster("w1").Client().CoreV1().Pods(f.NS).Create(f.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}}},
	}, metav1.CreateOptions{})
	s.check(err)

	f.Apply(f.Hub, f.NS, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
`)
	config := f.UserConfig("tenant")
	tenant, err := kubernetes.NewForConfig(config)
	s.check(err)
	pods := tenant.CoreV1().Pods(f.NS)
	reach := func(name string) error {
		t.Helper()
		log, err := pods.GetLogs(name, &corev1.PodLogOptions{}).Stream(f.Context())
		if err == nil {
			log.Close()
		}
		conn, sessionErr := ferrytest.ForwardPorts(config, "SPDY", portsOf(f.NS, name))
		if sessionErr == nil {
			conn.Close()
		}
		if (err == nil) != (sessionErr == nil) {
			t.Errorf("%s: log %v, session %v", name, err, sessionErr)
		}
		return err
	}
	s.check(reach(own.Name))
	made := func(name string, of *corev1.Pod, edits ...func(*corev1.Pod)) {
		t.Helper()
		pod := of.DeepCopy()
		pod.Name = name
		shadow := s.shadow(f, "w1", pod, job, func(p *corev1.Pod) { p.Status = corev1.PodStatus{} })
		s.check(f.Hub.Client().CoreV1().Pods(f.NS).Delete(f.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		shadow.ResourceVersion, shadow.UID = "", ""
		for _, edit := range edits {
			edit(shadow)
		}
		_, err := pods.Create(f.Context(), shadow, metav1.CreateOptions{})
		s.check(err)
	}
	made(other.Name, other)
	made("plain", plain)
	made("renamed", other)
	made("of-a-job-that-is-gone", own, func(p *corev1.Pod) { p.OwnerReferences[0].Name = "gone" })
	for _, name := range []string{other.Name, "plain", "renamed"} {
		if err := reach(name); err == nil || !strings.Contains(err.Error(), "has no Pod") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := reach("of-a-job-that-is-gone"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("of a Job that is gone: %v", err)
	}
	// What he edits on a Pod that stands for his has effect for himself alone.
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:"w2"}}}`, v1alpha1.AnnotationPodUID, other.UID, v1alpha1.AnnotationCluster)
	_, err = pods.Patch(f.Context(), own.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.check(err)
	if err := reach(own.Name); err == nil || !strings.Contains(err.Error(), "has no Pod") {
		t.Errorf("with another's UID: %v", err)
	}
	_, err = f.Hub.Kubectl(victim.Context(), "", "logs", "-n", victim.NS, "job/job")
	s.check(err)
}

// Who reaches the port needs a certificate of the hub's client CA, and the right to the Node's
// proxy. Who has both gets what is served, and nothing else of a kubelet.
func TestWhoReachesThePort(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	s := serveKubelet(f, t)
	s.stand(f, "w1")
	_, pod := s.runByHand(f, "job")
	log := "/containerLogs/" + f.NS + "/" + pod.Name + "/main"
	exec := "/exec/" + f.NS + "/" + pod.Name + "/main?command=true&output=1"
	f.Apply(f.Hub, "", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: node-reader}
rules: [{apiGroups: [""], resources: [nodes/proxy], resourceNames: [jobferry-w1], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: node-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: node-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: node-reader}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: job-owner, namespace: `+f.NS+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: job-owner}]
`)
	for name, row := range map[string]struct {
		who       *tls.Certificate
		log, exec int
	}{
		"a stranger":           {nil, http.StatusUnauthorized, http.StatusUnauthorized},
		"the owner of the Job": {clientOf(f, t, "job-owner"), http.StatusForbidden, http.StatusForbidden},
		"a kubelet":            {clientOf(f, t, "system:node:jobferry-w1", "system:nodes"), http.StatusForbidden, http.StatusForbidden},
		"who may get":          {clientOf(f, t, "node-reader"), http.StatusOK, http.StatusForbidden},
		"an admin":             {clientOf(f, t, "an-admin", "system:masters"), http.StatusOK, http.StatusSwitchingProtocols},
	} {
		if code, said := s.dial(f.Context(), row.who, log); code != row.log {
			t.Errorf("%s: log: %d %s", name, code, said)
		}
		if code, said := s.dial(f.Context(), row.who, exec); code != row.exec {
			t.Errorf("%s: exec: %d %s", name, code, said)
		}
	}
	admin := clientOf(f, t, "an-admin", "system:masters")
	for _, path := range []string{"/pods", "/run/" + f.NS + "/" + pod.Name + "/main?cmd=true", "/metrics", "/logs/", "/stats/summary", "/healthz", "/configz"} {
		if code, said := s.dial(f.Context(), admin, path); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, said)
		}
		if out, err := f.Hub.Kubectl(f.Context(), "", "get", "--raw", "/api/v1/nodes/jobferry-w1/proxy"+path); err == nil {
			t.Errorf("through the hub: %s: %s", path, out)
		}
	}
}

// dial asks the port itself, past the hub's API server.
func (s *server) dial(ctx context.Context, who *tls.Certificate, path string) (code int, said string) {
	s.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // as API servers do without --kubelet-certificate-authority
	if who != nil {
		config.Certificates = []tls.Certificate{*who}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address()+path, nil)
	s.check(err)
	if strings.HasPrefix(path, "/exec") {
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"v4.channel.k8s.io"}}
	}
	answer, err := transport.RoundTrip(r)
	s.check(err)
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return answer.StatusCode, ""
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // the Job runs on, and its log with it
	s.check(err)
	return answer.StatusCode, string(content)
}

// A namespace has no more than its part of what is open, whoever its users are, and its flood keeps
// nobody else from logs.
func TestAFloodOfOneNamespace(t *testing.T) {
	f, modest := ferrytest.For(t), ferrytest.For(t)
	s := serveKubelet(f, t, func(o *subresources.Options) { o.Streams = 10 })
	f.RunManager(s.manage)
	f.Register("w1")
	s.show(f)
	s.show(modest)
	pod := s.run(f, "job", 1)[0].Name
	s.run(modest, "job", 1)
	const flood = 30
	codes := make(chan string, flood)
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	for range flood {
		go func() {
			log, err := f.Hub.Client().CoreV1().Pods(f.NS).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
			if err != nil {
				codes <- err.Error()
				return
			}
			codes <- ""
			_, _ = io.Copy(io.Discard, log)
			log.Close()
		}()
	}
	served := 0
	for range flood {
		if said := <-codes; said == "" {
			served++
		} else if !strings.Contains(said, fmt.Sprintf("namespace %q has 2 streams open here, and 8 of 10 places are free", f.NS)) {
			t.Error(said)
		}
	}
	if served != 2 {
		t.Errorf("%d of 10 places are one namespace's", served)
	}
	if log := f.Kubectl(f.Hub, "", "logs", "-n", modest.NS, "job/job"); !strings.Contains(log, "started") {
		t.Errorf("%q", log)
	}
}

// The program serves it, also without the aggregated API.
func TestTheProgramServesNodes(t *testing.T) {
	f := ferrytest.For(t)
	s := program(f, t)
	f.StartManager("--pods", "--pods-address=127.0.0.1", fmt.Sprintf("--pods-port=%d", s.port))
	f.Register("w1")
	s.show(f)
	s.run(f, "job", 1)
	if log := f.Kubectl(f.Hub, "", "logs", "-n", f.NS, "job/job"); !strings.Contains(log, "started") {
		t.Errorf("%q", log)
	}
}

// The leader dies: the other replica serves what the hub's API server asks of the Node, shows what
// happens from then on, and makes no Pod anew.
func TestHandover(t *testing.T) {
	w := shown(t)
	replicas := map[int32]*ferrytest.Process{}
	for range 2 {
		s := program(w.Ferry, t)
		replicas[s.port] = w.StartManager("--leader-elect=true", "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=3s",
			"--leader-elect-retry-period=1s", "--pods", "--pods-address=127.0.0.1", fmt.Sprintf("--pods-port=%d", s.port))
	}
	w.Register("w1")
	w.Submit("job", rigtest.RunForever(), rigtest.Parallel(2), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Running(2))
	there := w.shownAs("w1", "job", running)
	before := w.pods(w.Hub, "job")
	if log := w.Kubectl(w.Hub, "", "logs", "-n", w.NS, "job/job"); !strings.Contains(log, "started") {
		t.Errorf("%q", log)
	}
	var leader int32
	port := func(wanted func(int32) bool) {
		w.Until(rig.Object(w.Hub.Client().CoreV1().RESTClient(), "nodes", "", v1alpha1.NodePrefix+"w1"), func(o runtime.Object) bool {
			node, is := o.(*corev1.Node)
			if !is || !wanted(node.Status.DaemonEndpoints.KubeletEndpoint.Port) {
				return false
			}
			leader = node.Status.DaemonEndpoints.KubeletEndpoint.Port
			return true
		})
	}
	port(func(p int32) bool { return replicas[p] != nil })
	killed := leader
	replicas[killed].Kill()
	port(func(p int32) bool { return replicas[p] != nil && p != killed })
	if log := w.Kubectl(w.Hub, "", "logs", "-n", w.NS, "job/job"); !strings.Contains(log, "started") {
		t.Errorf("after the handover: %q", log)
	}
	for name := range there {
		w.EndPod("w1", name)
		w.podUntil(w.Hub, name, succeeded)
	}
	for name, pod := range w.pods(w.Hub, "job") {
		if was := before[name]; was != nil && was.UID != pod.UID {
			t.Errorf("Pod %s was made anew", name)
		}
	}
}

// An API server that verifies kubelets' certificates gets one of the hub's signer, once somebody
// has approved it, and none before.
func TestTheHubsSigner(t *testing.T) {
	f := ferrytest.ForHub(t, "strict")
	s := program(f, t)
	f.StartManager("--pods", "--pods-address=127.0.0.1", fmt.Sprintf("--pods-port=%d", s.port), "--pods-request-certificate")
	f.Register("w1")
	s.show(f)
	s.run(f, "job", 1)
	_, err := f.Hub.Kubectl(f.Context(), "", "logs", "-n", f.NS, "job/job")
	if err == nil || !strings.Contains(err.Error(), "x509: certificate signed by unknown authority") {
		t.Errorf("with a self-signed certificate: %v", err)
	}
	if log := f.Kubectl(f.Hub, "", "logs", "-n", f.NS, "job/job", "--insecure-skip-tls-verify-backend"); !strings.Contains(log, "started") {
		t.Errorf("%q", log)
	}
	var request string
	f.Until(rig.Objects(f.Hub.Client().CertificatesV1().RESTClient(), "certificatesigningrequests", ""), func(o runtime.Object) bool {
		csr, _ := o.(*certificatesv1.CertificateSigningRequest)
		if csr == nil || csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
			return false
		}
		request = csr.Name
		return true
	})
	f.Kubectl(f.Hub, "", "certificate", "approve", request)
	for { // until the manager has fetched it
		log, err := f.Hub.Kubectl(f.Context(), "", "logs", "-n", f.NS, "job/job")
		if err == nil {
			if !strings.Contains(log, "started") {
				t.Errorf("%q", log)
			}
			return
		}
		if f.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// portsOf is the path of a Pod's subresource portforward.
func portsOf(namespace, pod string) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + pod + "/portforward"
}
