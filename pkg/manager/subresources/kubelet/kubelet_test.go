package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/subresources/authoritytest"
	"github.com/jobferry/jobferry/pkg/util/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a hub with shadow Pods, and the API before it.
type world struct {
	t    *testing.T
	of   *authoritytest.Authority
	api  *httptest.Server
	pods map[types.NamespacedName]*corev1.Pod
	fail error // of the hub

	mu      sync.Mutex
	reviews []string  // user, verb and Node of each
	served  []Request // that were passed on
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, of: authoritytest.New(t), pods: map[types.NamespacedName]*corev1.Pod{}}
	clients, err := NewClientAuthority(fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: AuthenticationConfigMap},
		Data:       map[string]string{clientCA: w.of.PEM(), "requestheader-client-ca-file": authoritytest.New(t).PEM()},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { clients.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, read := clients.authority.VerifyOptions()
		return read, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.api = httptest.NewUnstartedServer(New(Backends{
		Authenticate: clients, Authorize: w.authorize, Pods: w, Serve: w.serve,
	}))
	w.api.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	w.api.StartTLS()
	t.Cleanup(w.api.Close)
	w.put("team", "a")
	return w
}

// put has the hub have a shadow Pod.
func (w *world) put(namespace, name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelShadow: "true"},
			Annotations:     map[string]string{v1alpha1.AnnotationPodUID: "pod-uid"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job-uid", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "jobferry-w"},
	}
	w.pods[types.NamespacedName{Namespace: namespace, Name: name}] = p
	return p
}

func (w *world) ReadPod(_ context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	if w.fail != nil {
		return nil, w.fail
	}
	if p := w.pods[key]; p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
}

func (w *world) authorize(_ context.Context, u user.Info, asked authorizationv1.ResourceAttributes) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reviews = append(w.reviews, fmt.Sprintf("%s %v %s %s/%s %s", u.GetName(), u.GetGroups(), asked.Verb, asked.Resource, asked.Subresource, asked.Name))
	if u.GetName() == "hub" || u.GetName() == "reader" && asked.Verb == "get" {
		return nil
	}
	return Forbidden(u, asked)
}

func (w *world) serve(out http.ResponseWriter, _ *http.Request, req Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	req.User = nil
	w.served = append(w.served, req)
	fmt.Fprint(out, "served")
}

// ask makes a request with a client certificate, if there is one.
func (w *world) ask(certificate *tls.Certificate, method, what string) (code int, said string) {
	w.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(w.api.Certificate())
	config := &tls.Config{RootCAs: roots}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.api.URL+what, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer token")
	r.Header.Set("X-Remote-User", "system:admin")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

const aLog = "/containerLogs/team/a/main"

// Only a certificate of the client CA, for clients and in its time, says who asks: no token, no
// header, and no other authority of the hub.
func TestWhoIsAuthenticated(t *testing.T) {
	w := newWorld(t)
	for name, row := range map[string]struct {
		certificate *tls.Certificate
		code        int
	}{
		"the API server":        {w.of.Client("hub"), http.StatusOK},
		"nobody":                {nil, http.StatusUnauthorized},
		"of another authority":  {authoritytest.New(t).Client("hub"), http.StatusUnauthorized},
		"of a server":           {w.of.Client("hub", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), http.StatusUnauthorized},
		"expired":               {w.of.Client("hub", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), http.StatusUnauthorized},
		"of another, no rights": {w.of.Client("system:node:other"), http.StatusForbidden},
	} {
		for _, what := range []string{aLog, "/containerLogs/team/none/main", "/exec/team/a/main?command=id&output=1"} {
			code, said := w.ask(row.certificate, http.MethodGet, what)
			want := row.code
			if strings.Contains(what, "none") && want == http.StatusOK {
				want = http.StatusBadRequest
			}
			if code != want || strings.Contains(said, "jobferry-w") {
				t.Errorf("%s: %s: %d %s, want %d", name, what, code, said, want)
			}
		}
	}
	if code, _ := w.ask(nil, http.MethodGet, "/no/such/path"); code != http.StatusUnauthorized {
		t.Errorf("a stranger learns which paths there are: %d", code)
	}
}

// What a kubelet has besides isn't here.
func TestOtherPathsAndMethods(t *testing.T) {
	w := newWorld(t)
	hub := w.of.Client("hub")
	for _, what := range []string{
		"/", "/run/team/a/main?cmd=id", "/pods", "/runningpods/", "/metrics", "/metrics/cadvisor", "/stats/summary", "/logs/", "/configz", "/healthz",
		"/debug/pprof/", "/checkpoint/team/a/main", "/exec/team/a/uid/main?command=id&output=1", "/cri/exec/token", "/containerLogs/team/a", "/containerLogs//a/main",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, said := w.ask(hub, method, what); code != http.StatusNotFound && code != http.StatusMovedPermanently && code != http.StatusTemporaryRedirect && code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, what, code, said)
			}
		}
	}
	for what, methods := range map[string][]string{
		aLog:                           {http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead, http.MethodOptions},
		"/exec/team/a/main?command=id": {http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead, http.MethodOptions, http.MethodConnect},
		"/portForward/team/a":          {http.MethodPut, http.MethodDelete, http.MethodHead},
		"/attach/team/a/main?output=1": {http.MethodPut, http.MethodDelete, http.MethodHead},
	} {
		for _, method := range methods {
			if code, said := w.ask(hub, method, what); code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, what, code, said)
			}
		}
	}
	if len(w.served) > 0 || len(w.reviews) > 0 {
		t.Errorf("served %v, reviewed %v", w.served, w.reviews)
	}
}

// Who may get nodes/proxy reads logs, and runs no command, by whatever method.
func TestWhatIsAuthorized(t *testing.T) {
	w := newWorld(t)
	reader := w.of.Client("reader", func(c *x509.Certificate) { c.Subject.Organization = []string{"readers"} })
	for what, want := range map[string]struct {
		code int
		verb string
	}{
		aLog:                                    {http.StatusOK, "get"},
		"/exec/team/a/main?command=id&output=1": {http.StatusForbidden, "create"},
		"/attach/team/a/main?output=1":          {http.StatusForbidden, "create"},
		"/portForward/team/a":                   {http.StatusForbidden, "create"},
		"/containerLogs/team/none/main":         {http.StatusBadRequest, "get"},
		"/exec/team/none/main?command=id":       {http.StatusForbidden, "create"},
	} {
		methods := []string{http.MethodGet, http.MethodPost}
		if want.verb == "get" {
			methods = methods[:1]
		}
		for _, method := range methods {
			w.reviews = nil
			code, said := w.ask(reader, method, what)
			node := "jobferry-w"
			if strings.Contains(what, "none") {
				node = ""
			}
			if code != want.code || len(w.reviews) != 1 || w.reviews[0] != "reader [readers] "+want.verb+" nodes/proxy "+node {
				t.Errorf("%s %s: %d %s, reviewed %q", method, what, code, said, w.reviews)
			}
		}
	}
}

// A request is read as API servers write it.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	hub := w.of.Client("hub")
	job := types.NamespacedName{Namespace: "team", Name: "job"}
	for what, want := range map[string]Request{
		aLog + "?follow=true&tailLines=5": {Subresource: Log, Container: "main", Options: url.Values{"follow": {"true"}, "tailLines": {"5"}}},
		"/exec/team/a/main?command=sh&command=-c&input=1&output=1&tty=1&error=1": {Subresource: Exec, Container: "main",
			Options: url.Values{"command": {"sh", "-c"}, "stdin": {"1"}, "stdout": {"1"}, "tty": {"1"}}},
		"/attach/team/a/main?error=1":   {Subresource: Attach, Container: "main", Options: url.Values{"stderr": {"1"}}},
		"/portForward/team/a?port=1,22": {Subresource: PortForward, Options: url.Values{"ports": {"1", "22"}}},
	} {
		want.Job, want.JobUID, want.Worker, want.Pod, want.PodUID = job, "job-uid", "w", "a", "pod-uid"
		w.served = nil
		if code, said := w.ask(hub, http.MethodGet, what); code != http.StatusOK || len(w.served) != 1 || fmt.Sprint(w.served[0]) != fmt.Sprint(want) {
			t.Errorf("%s: %d %s: %+v, want %+v", what, code, said, w.served, want)
		}
	}
}

// What can't be read, or isn't known, is refused, and nobody is asked about it.
func TestMalformedRequests(t *testing.T) {
	w := newWorld(t)
	hub := w.of.Client("hub")
	for what, text := range map[string]string{
		aLog + "?tailLines=1&uid=victim":                     `unknown parameter "uid"`,
		aLog + "?worker=other":                               `unknown parameter "worker"`,
		"/exec/team/a/main?command=id&output=1&container=no": `unknown parameter \"container\"`,
		"/portForward/team/a?pod=victim":                     `unknown parameter \"pod\"`,
		aLog + "?follow=%zz":                                 "the query can't be read",
		"/containerLogs/team/..%2fvictim/main":               "these aren't names",
		"/containerLogs/..%2f..%2fsecrets/a/main":            "these aren't names",
		"/containerLogs/team/a/MAIN":                         "these aren't names",
	} {
		if code, said := w.ask(hub, http.MethodGet, what); code != http.StatusBadRequest || !strings.Contains(said, text) {
			t.Errorf("%s: %d %s, want %q", what, code, said, text)
		}
	}
	if len(w.served) > 0 || len(w.reviews) > 0 {
		t.Errorf("served %v, reviewed %v", w.served, w.reviews)
	}
}

// A hub that doesn't answer isn't one without the Pod.
func TestTheHubDoesntAnswer(t *testing.T) {
	w := newWorld(t)
	w.fail = errors.New("connection refused")
	hub := w.of.Client("hub")
	for _, what := range []string{aLog, "/portForward/team/a"} {
		if code, said := w.ask(hub, http.MethodGet, what); code != http.StatusInternalServerError || !strings.Contains(said, "the hub doesn't answer for Pod") {
			t.Errorf("%s: %d %s", what, code, said)
		}
	}
}

// A hub that never says whether a request is allowed, or what a Pod is: the client is told, before
// its time as a stranger is over.
func TestTheHubNeverAnswers(t *testing.T) {
	for name, hangs := range map[string]Backends{
		"authorization": {Pods: &world{pods: map[types.NamespacedName]*corev1.Pod{}}},
		"pod":           {Pods: hanging{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hangs.Authenticate = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
					return &authenticator.Response{User: &user.DefaultInfo{Name: "hub"}}, true, nil
				})
				hangs.Authorize = func(ctx context.Context, _ user.Info, _ authorizationv1.ResourceAttributes) error {
					<-ctx.Done()
					return ctx.Err()
				}
				began, answer := time.Now(), httptest.NewRecorder()
				New(hangs).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/team/a/main", nil))
				if took := time.Since(began); answer.Code != http.StatusInternalServerError || answer.Body.Len() == 0 || took >= serve.StrangerTimeout {
					t.Errorf("after %s: %d %s", took, answer.Code, answer.Body)
				}
			})
		})
	}
}

// hanging is a hub that never answers for a Pod.
type hanging struct{}

func (hanging) ReadPod(ctx context.Context, _ types.NamespacedName) (*corev1.Pod, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
