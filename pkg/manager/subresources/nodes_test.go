package subresources

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// node is a world whose hub has a shadow of the Pod job-a, and the kubelet's API of its Node.
type node struct {
	*world
	api *httptest.Server
}

func newNode(t *testing.T, edits ...func(*Options)) *node {
	t.Helper()
	w := newWorld(t, edits...)
	n := &node{world: w, api: httptest.NewServer(w.forNodes())}
	t.Cleanup(func() { w.server.stop(); n.api.Close() })
	w.hub.put(shadow("job-a"))
	return n
}

// forNodes is the kubelet's API. A header says whose certificate a request has.
func (w *world) forNodes() http.Handler {
	hub := &rbac{allows: func(spec *authorizationv1.SubjectAccessReviewSpec) bool { return spec.User == "hub" }}
	return kubelet.New(kubelet.Backends{
		Authenticate: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			name := r.Header.Get("Certificate")
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
		}),
		Authorize: newAccessReviewer(hub).reviewNode,
		Pods:      hubPods{w.hub}, Serve: w.handler.serveNode,
	})
}

// hubPods reads Pods of the hub.
type hubPods struct{ *hub }

func (h hubPods) ReadPod(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, h.Get(ctx, key, pod)
}

// shadow makes the hub's Pod that stands for the worker's of the same name.
func shadow(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelShadow: "true"},
			Annotations:     map[string]string{v1alpha1.AnnotationPodUID: name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: hubUID, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: v1alpha1.NodePrefix + "w"},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// ask makes a request as the hub's API server does.
func (n *node) ask(what string, edits ...func(*http.Request)) (reply, error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.api.URL+what, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	request.Header.Set("Certificate", "hub")
	for _, edit := range edits {
		edit(request)
	}
	response, err := n.api.Client().Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(content)}, err
}

const shadowLog = "/containerLogs/team/job-a/main"

// A log has all that the API server asks for, and no option is lost on the way.
func TestLogOfANode(t *testing.T) {
	n := newNode(t)
	var got url.Values
	n.worker.on(logPath, func(out http.ResponseWriter, r *http.Request) { got = r.URL.Query(); fmt.Fprint(out, "a line\n") })
	for asked, want := range map[string]string{
		"":             "container=main",
		"?follow=true": "container=main&follow=true",
		"?previous=true&timestamps=true&sinceSeconds=5&tailLines=3&limitBytes=100": "container=main&limitBytes=100&previous=true&sinceSeconds=5&tailLines=3&timestamps=true",
		"?sinceTime=2026-01-02T03:04:05Z&stream=All":                               "container=main&sinceTime=2026-01-02T03%3A04%3A05Z",
		"?stream=Stderr": "container=main&stream=Stderr",
	} {
		answer, err := n.ask(shadowLog + asked)
		if err != nil || answer.code != http.StatusOK || answer.content != "a line\n" || got.Encode() != want {
			t.Errorf("%s: %+v, %v; the worker was asked for %s", asked, answer, err, got.Encode())
		}
	}
	agent := n.worker.heard()[0].Get("User-Agent")
	if !strings.Contains(agent, `(user "hub"; job team/job)`) {
		t.Errorf("the worker's audit log has %q", agent)
	}
}

// Sessions pass with their options under the names that the worker's API server knows.
func TestSessionsOfANode(t *testing.T) {
	for asked, want := range map[string]string{
		"/exec/team/job-a/main?command=sh&command=-c&command=true&input=1&output=1&error=1": "exec?command=sh&command=-c&command=true&container=main&stderr=true&stdin=true&stdout=true&tty=false",
		"/exec/team/job-a/main?command=sh&output=1&error=1&tty=1":                           "exec?command=sh&container=main&stderr=false&stdin=false&stdout=true&tty=true",
		"/attach/team/job-a/main?output=1":                                                  "attach?container=main&stderr=false&stdin=false&stdout=true&tty=false",
		"/portForward/team/job-a":                                                           "portforward?",
		"/portForward/team/job-a?port=80,81":                                                "portforward?ports=80&ports=81",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			n := newNode(t)
			n.worker.on(jobPodPath+strings.SplitN(want, "?", 2)[0], func(out http.ResponseWriter, r *http.Request) {
				conn, rw, err := http.NewResponseController(out).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n%s %s\n",
					r.Method, strings.TrimPrefix(r.URL.Path, jobPodPath)+"?"+r.URL.Query().Encode())
				_ = rw.Flush()
				_, _ = io.Copy(conn, rw) // an echo
			})
			conn, err := net.Dial("tcp", strings.TrimPrefix(n.api.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nCertificate: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", method, asked)
			in := bufio.NewReader(conn)
			answer, err := http.ReadResponse(in, nil) //nolint:bodyclose // the connection is
			if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%s %s: %+v, %v", method, asked, answer, err)
			}
			fmt.Fprintln(conn, "hello")
			line, _ := in.ReadString('\n')
			echo, _ := in.ReadString('\n')
			if line != method+" "+want+"\n" || echo != "hello\n" {
				t.Errorf("%s %s: the worker was asked for %q, and answers %q", method, asked, line, echo)
			}
		}
	}
}

// A tenant writes Pods of his namespace as he likes. Whatever they say, he reaches no Pod of the
// worker but those of his own Jobs' mirrors.
func TestATenantsShadowsReachOnlyHisOwnPods(t *testing.T) {
	owner := func(edit func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(&p.OwnerReferences[0]) }
	}
	uid := func(uid string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPodUID] = uid }
	}
	rows := map[string]struct {
		pod  string
		edit func(*corev1.Pod)
		hub  func(*node)
		text string
	}{
		"without the label":        {edit: func(p *corev1.Pod) { p.Labels = nil }, text: "it isn't one of a dispatched Job"},
		"the label says no":        {edit: func(p *corev1.Pod) { p.Labels[v1alpha1.LabelShadow] = "false" }, text: "it isn't one of a dispatched Job"},
		"on a real Node":           {edit: func(p *corev1.Pod) { p.Spec.NodeName = "node" }, text: "it isn't one of a dispatched Job"},
		"on no Node":               {edit: func(p *corev1.Pod) { p.Spec.NodeName = "" }, text: "it isn't one of a dispatched Job"},
		"on the Node of another":   {edit: func(p *corev1.Pod) { p.Spec.NodeName = "jobferry-other" }, text: `Job "job" isn't placed on worker "other"`},
		"of no Job":                {edit: func(p *corev1.Pod) { p.OwnerReferences = nil }, text: "no Job is its controller"},
		"of a Job that isn't it":   {edit: owner(func(o *metav1.OwnerReference) { o.Controller = nil }), text: "no Job is its controller"},
		"of another kind":          {edit: owner(func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" }), text: "no Job is its controller"},
		"of a Job that is gone":    {edit: owner(func(o *metav1.OwnerReference) { o.Name = "gone" }), text: "not found"},
		"of a Job with a path":     {edit: owner(func(o *metav1.OwnerReference) { o.Name = "../../other/jobs/job" }), text: "no Job is its controller"},
		"of an earlier Job":        {edit: owner(func(o *metav1.OwnerReference) { o.UID = "earlier" }), text: `Job "job" is another than the one of that Pod`},
		"of any Job":               {edit: owner(func(o *metav1.OwnerReference) { o.UID = "" }), text: "no Job is its controller"},
		"for any Pod":              {edit: uid(""), text: "which Pod of the worker"},
		"for a Pod of another UID": {edit: uid("another"), text: `Job "job" has no Pod "job-a" in worker "w"`},
		"named as another's Pod":   {pod: "victim", edit: uid("victim"), text: `Job "job" has no Pod "victim" in worker "w"`},
		"with a victim's UID":      {edit: uid("victim"), text: `Job "job" has no Pod "job-a" in worker "w"`},
		"of a plain Job": {hub: func(n *node) {
			n.hub.put(hubJob(func(j *batchv1.Job) { j.Spec.ManagedBy = nil }))
		}, text: "isn't Jobferry's"},
		"of a mirror of another hub": {hub: func(n *node) {
			n.worker.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob(func(j *batchv1.Job) { j.Labels[v1alpha1.LabelOrigin] = "another" }))
		}, text: "hasn't started there yet"},
		"of a mirror of another Job": {hub: func(n *node) {
			n.worker.object("/apis/batch/v1/namespaces/team/jobs/job", mirrorJob(func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "another" }))
		}, text: "hasn't started there yet"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.worker.object(podsPath+"/victim", pod("victim", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "of-another" }))
			reached := func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the worker was asked for %s", r.URL) }
			for _, name := range []string{"job-a", "victim"} {
				for _, sub := range []string{"log", "exec", "attach", "portforward"} {
					n.worker.on(podsPath+"/"+name+"/"+sub, reached)
				}
			}
			name := "job-a"
			if row.pod != "" {
				name = row.pod
			}
			edits := []func(*corev1.Pod){}
			if row.edit != nil {
				edits = append(edits, row.edit)
			}
			n.hub.put(shadow(name, edits...))
			if row.hub != nil {
				row.hub(n)
			}
			answer, err := n.ask("/containerLogs/team/" + name + "/main")
			if err != nil || answer.code != http.StatusBadRequest || !strings.Contains(answer.content, row.text) {
				t.Errorf("log: %+v, %v; want %q", answer, err, row.text)
			}
			for _, session := range []string{"/exec/team/" + name + "/main?command=sh&output=1", "/attach/team/" + name + "/main?output=1", "/portForward/team/" + name} {
				answer, err := n.ask(session, upgrades)
				var s metav1.Status
				if err != nil || json.Unmarshal([]byte(answer.content), &s) != nil || answer.code < 400 || int(s.Code) != answer.code || !strings.Contains(s.Message, row.text) {
					t.Errorf("%s: %+v, %v; want %q", session, answer, err, row.text)
				}
			}
		})
	}
}

func upgrades(r *http.Request) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
}

// A certificate of the client CA is no right, and nobody without one learns which Pods there are.
func TestWhoHasNoRightToTheNode(t *testing.T) {
	n := newNode(t)
	n.worker.on(logPath, func(http.ResponseWriter, *http.Request) { t.Error("the worker was asked") })
	var said []string
	for _, what := range []string{shadowLog, "/containerLogs/team/none/main", "/exec/team/job-a/main?command=sh&output=1", "/portForward/team/none"} {
		answer, err := n.ask(what, upgrades, func(r *http.Request) { r.Header.Set("Certificate", "kubelet") })
		if err != nil || answer.code != http.StatusForbidden || strings.Contains(answer.content, "job-a") {
			t.Errorf("%s: %+v, %v", what, answer, err)
		}
		said = append(said, answer.content)
	}
	if said[0] != said[1] {
		t.Errorf("who has no right learns whether there's a Pod: %q", said)
	}
	if n.worker.heard() != nil {
		t.Errorf("the worker was asked: %v", n.worker.heard())
	}
}

// An API server asks for many users: it has no bound of its own, but each namespace has.
func TestANamespaceOfANodeLeavesStreamsToOthers(t *testing.T) {
	n := newNode(t, func(o *Options) { o.Streams, o.StreamsPerUser = 25, 2 })
	n.worker.on(logPath, func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		<-r.Context().Done()
	})
	n.hub.put(shadow("job-a", func(p *corev1.Pod) { p.Namespace = "other" }))
	open := func(namespace string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.api.URL+"/containerLogs/"+namespace+"/job-a/main?follow=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Certificate", "hub")
		answer, err := n.api.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		line, _ := bufio.NewReader(answer.Body).ReadString('\n')
		return answer.StatusCode, line
	}
	served := 0
	for range 12 {
		code, said := open(namespace)
		if code == http.StatusOK {
			served++
		} else if code != http.StatusInternalServerError || !strings.Contains(said, `namespace "team" has 5 streams open here`) {
			t.Errorf("%d %q", code, said)
		}
	}
	if served != 5 {
		t.Errorf("of 25 places, one namespace has %d", served)
	}
	// The other namespace has no Job: what counts is that it isn't refused for want of a place.
	if code, said := open("other"); code != http.StatusBadRequest || !strings.Contains(said, "not found") {
		t.Errorf("another namespace: %d %q", code, said)
	}
}

// A log without an end passes as fast as it's read, and ends with whoever reads it.
func TestAGiantLogOfANode(t *testing.T) {
	n := newNode(t)
	sent := make(chan int, 1)
	n.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
		total, line := 0, strings.Repeat("x", 1<<20) // and no newline
		for {
			k, err := io.WriteString(out, line)
			if total += k; err != nil {
				break
			}
		}
		sent <- total
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.api.URL+shadowLog, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Certificate", "hub")
	answer, err := n.api.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.CopyN(io.Discard, answer.Body, 64<<20); err != nil {
		t.Fatal(err)
	}
	before := costtest.Heap()
	cancel()
	if total := <-sent; total > 128<<20 { // what is in flight
		t.Errorf("%d bytes were taken of a worker for one who has left", total)
	}
	if before > 64<<20 {
		t.Errorf("%d MiB are held for a log", before>>20)
	}
}

// What a worker says of an error reaches the user through the API server, which shows the text of
// two codes only.
func TestErrorsOfANodesLog(t *testing.T) {
	n := newNode(t)
	for name, row := range map[string]struct {
		said metav1.Status
		code int
		text string
	}{
		"too early":   {failure(http.StatusBadRequest, "BadRequest", "container is waiting\x07 to start"), http.StatusBadRequest, `worker "w": container is waiting to start`},
		"gone":        {failure(http.StatusNotFound, "NotFound", "no Pod"), http.StatusBadRequest, `worker "w": no Pod`},
		"forbidden":   {failure(http.StatusForbidden, "Forbidden", "no"), http.StatusInternalServerError, "refuses this to the hub"},
		"broken":      {failure(http.StatusInternalServerError, "InternalError", "etcd"), http.StatusInternalServerError, "with 500: etcd"},
		"many others": {failure(http.StatusTooManyRequests, "TooManyRequests", "later"), http.StatusInternalServerError, "with 429: later"},
	} {
		n.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) { writeJSON(out, int(row.said.Code), row.said) })
		answer, err := n.ask(shadowLog)
		if err != nil || answer.code != row.code || !strings.Contains(answer.content, row.text) || strings.HasPrefix(answer.content, "{") {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}

// A log that breaks off in the worker doesn't look complete.
func TestALogOfANodeThatBreaksOff(t *testing.T) {
	n := newNode(t)
	n.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		panic(http.ErrAbortHandler)
	})
	if answer, err := n.ask(shadowLog); err == nil || answer.content != "first\n" {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A Pod that a tenant has made as large as the hub stores it isn't decoded.
func TestLargePodsOfTheHubArentRead(t *testing.T) {
	for name, p := range map[string]*corev1.Pod{
		"many containers": shadow("job-a", func(p *corev1.Pod) { p.Spec.Containers = make([]corev1.Container, maxAnswerValues) }),
		"many labels":     shadow("job-a", func(p *corev1.Pod) { p.Labels = manyLabels(maxAnswerFields + 1) }),
		"as they are":     shadow("job-a"),
	} {
		api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if accept := r.Header.Get("Accept"); accept != "application/json" {
				t.Errorf("it asks for %s", accept)
			}
			p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			writeJSON(out, http.StatusOK, p)
		}))
		defer api.Close()
		reader, err := newPodReader(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}}, api.Client())
		if err != nil {
			t.Fatal(err)
		}
		got, err := reader.ReadPod(t.Context(), types.NamespacedName{Namespace: namespace, Name: "job-a"})
		if name == "as they are" {
			if err != nil || got.Spec.NodeName != "jobferry-w" {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		} else if !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reviews are remembered as for the aggregated API: a denial for a while, a right not at all.
func TestReviewsOfNodes(t *testing.T) {
	hub := &rbac{allows: func(spec *authorizationv1.SubjectAccessReviewSpec) bool {
		a := spec.ResourceAttributes
		return a.Resource == "nodes" && a.Subresource == "proxy" && a.Name == "jobferry-w" && a.Group == "" && a.Namespace == "" && spec.User == "hub"
	}}
	r := newAccessReviewer(hub)
	asked := authorizationv1.ResourceAttributes{Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "jobferry-w", Verb: "get"}
	for range 2 * maxReviews {
		if err := r.reviewNode(t.Context(), &user.DefaultInfo{Name: "hub"}, asked); err != nil {
			t.Error(err)
		}
		if err := r.reviewNode(t.Context(), &user.DefaultInfo{Name: "kubelet"}, asked); !apierrors.IsForbidden(err) {
			t.Error(err)
		}
	}
	if asked := hub.asked.Load(); asked != 2*maxReviews+1 {
		t.Errorf("the hub was asked %d times", asked)
	}
}
