package front

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// apiServer stands for one: it creates namespaces, and answers all else with its name.
type apiServer struct {
	*httptest.Server
	mu         sync.Mutex
	namespaces map[string]corev1.Namespace
	release    chan struct{} // ends watches
}

func newAPIServer(t *testing.T, name string) *apiServer {
	s := &apiServer{namespaces: map[string]corev1.Namespace{}, release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-of-"+name {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch {
		case r.Method == http.MethodPost && r.URL.Path == namespacesPath:
			s.create(t, w, r)
		case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, namespacesPath):
			s.mu.Lock()
			delete(s.namespaces, namespaceOf(r.URL.Path))
			s.mu.Unlock()
			_, _ = io.WriteString(w, "{}")
		case r.URL.Query().Has("watch"):
			_, _ = io.WriteString(w, "event of "+name+"\n")
			w.(http.Flusher).Flush()
			<-s.release
		default:
			_, _ = io.WriteString(w, name)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(sync.OnceFunc(func() { close(s.release) }))
	return s
}

func (s *apiServer) create(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var n corev1.Namespace
	if err := json.Unmarshal(body, &n); err != nil {
		t.Error(err)
	}
	if n.Name == "" {
		n.Name = n.GenerateName + "x7"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if _, has := s.namespaces[n.Name]; has {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(apierrors.NewAlreadyExists(corev1.Resource("namespaces"), n.Name).Status())
		return
	}
	s.namespaces[n.Name] = n
	n.UID = "uid-of-" + "created"
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(n)
}

func (s *apiServer) get(name string) (corev1.Namespace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, has := s.namespaces[name]
	return n, has
}

// start returns a Front before two servers, and a configuration for its clients.
func start(t *testing.T) (hub, worker *apiServer, config *rest.Config) {
	hub, worker = newAPIServer(t, "hub"), newAPIServer(t, "worker")
	f, err := Serve(&rest.Config{Host: hub.URL, BearerToken: "secret-of-hub"}, &rest.Config{Host: worker.URL, BearerToken: "secret-of-worker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	kubeconfig, err := f.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType = "application/json"
	return hub, worker, config
}

// fetch returns the status and the first line of an answer, as soon as that is there.
func fetch(t *testing.T, config *rest.Config, path string) (code int, line string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = 30 * time.Second
	response, err := client.Get(config.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	line, err = bufio.NewReader(response.Body).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return response.StatusCode, line
}

func TestRoutes(t *testing.T) {
	_, _, config := start(t)
	for path, want := range map[string]string{
		"/apis/batch/v1/namespaces/a/jobs":             "hub",
		"/apis/batch/v1/jobs":                          "hub",
		"/api/v1/namespaces/a":                         "hub",
		"/api/v1/namespaces/pods":                      "hub",
		"/api/v1/namespaces/a/events":                  "hub",
		"/api/v1/namespaces/a/serviceaccounts/default": "hub",
		"/version":                            "hub",
		"/apis":                               "hub",
		"/api/v1/pods":                        "worker",
		"/api/v1/namespaces/a/pods":           "worker",
		"/api/v1/namespaces/a/pods/b/log":     "worker",
		"/api/v1/namespaces/a/resourcequotas": "worker",
		"/api/v1/nodes/n":                     "worker",
		"/apis/policy/v1/namespaces/a/poddisruptionbudgets":   "worker",
		"/apis/scheduling.k8s.io/v1beta1/namespaces/a/groups": "worker",
	} {
		if _, got := fetch(t, config, path); got != want {
			t.Errorf("%s: %q answers, want %s", path, got, want)
		}
	}
}

func TestNamespacesAreInBoth(t *testing.T) {
	hub, worker, config := start(t)
	client := kubernetes.NewForConfigOrDie(config)
	created, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "job-", Labels: map[string]string{"a": "b"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Name != "job-x7" || created.UID == "" {
		t.Errorf("created %v", created)
	}
	for _, s := range []*apiServer{hub, worker} {
		if n, has := s.get("job-x7"); !has || n.Labels[v1alpha1.LabelDispatch] != v1alpha1.DispatchEnabled || n.Labels["a"] != "b" {
			t.Errorf("namespace %v, there: %v", n, has)
		}
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), created, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one: error %v", err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "job-x7", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*apiServer{hub, worker} {
		if _, has := s.get("job-x7"); has {
			t.Error("it's still there")
		}
	}
}

// Events of a watch arrive while the watch goes on.
func TestWatchesFlow(t *testing.T) {
	_, _, config := start(t)
	if _, line := fetch(t, config, "/api/v1/pods?watch=1"); line != "event of worker\n" {
		t.Errorf("%q", line)
	}
}

func TestOnlyWithTheToken(t *testing.T) {
	_, _, config := start(t)
	config.BearerToken = "another"
	if code, _ := fetch(t, config, "/api/v1/pods"); code != http.StatusUnauthorized {
		t.Errorf("status %d", code)
	}
}
